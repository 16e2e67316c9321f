"""Scalars of the standard library as trees: the exact form of each, and what is no such form."""

from __future__ import annotations

import datetime as dt
import io
import math
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from agentloom.errors import FormatError, ValueRefused
from agentloom.format.limits import INT_DIGITS
from agentloom.format.scalars import pack_float, pack_int, unpack_bytes, unpack_float, unpack_int
from agentloom.format.values import Types, decode, encode

NONE = Types()
HALF = dt.timedelta(hours=5, minutes=30)
NAN = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
NAIVE = dt.datetime.fromisoformat("2026-01-02T03:04:05.000006")
FORMS: list[tuple[Any, Any]] = [
    (NAIVE, {"$datetime": "2026-01-02T03:04:05.000006"}),
    (
        dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        {"$datetime": {"at": "2026-01-02T00:00:00", "offset": [0, 0, 0]}},
    ),
    (
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        {"$datetime": {"at": "2026-10-25T02:30:00", "zone": "Europe/Berlin", "fold": 1}},
    ),
    (NAIVE.replace(fold=1), {"$datetime": {"at": "2026-01-02T03:04:05.000006", "fold": 1}}),
    (
        dt.datetime(2026, 1, 2, tzinfo=dt.timezone(-HALF, "west")),
        {"$datetime": {"at": "2026-01-02T00:00:00", "offset": [-1, 66600, 0], "name": "west"}},
    ),
    (
        dt.datetime(2026, 1, 2, tzinfo=dt.timezone(HALF, "\ud800")),
        {"$datetime": {"at": "2026-01-02T00:00:00", "offset": [0, 19800, 0], "name": {"$str": "7aCA"}}},
    ),
    (dt.time(3, 4), {"$time": "03:04:00"}),
    (dt.time(3, 4, fold=1), {"$time": {"at": "03:04:00", "fold": 1}}),
    (dt.time(3, 4, tzinfo=dt.timezone(HALF)), {"$time": {"at": "03:04:00", "offset": [0, 19800, 0]}}),
    (dt.time(3, 4, tzinfo=ZoneInfo("UTC")), {"$time": {"at": "03:04:00", "zone": "UTC"}}),
    (dt.date(2026, 1, 2), {"$date": "2026-01-02"}),
    (dt.timedelta(days=-1, seconds=2, microseconds=3), {"$timedelta": [-1, 2, 3]}),
    (Decimal("-0.10"), {"$decimal": "-0.10"}),
    (Decimal("1E+10"), {"$decimal": "1E+10"}),
    (UUID(int=7), {"$uuid": "00000000-0000-0000-0000-000000000007"}),
    (complex(1, -0.0), {"$complex": [1.0, -0.0]}),
    (complex(math.inf, 2.0), {"$complex": [{"$float": "inf"}, 2.0]}),
    (Fraction(-1, 2**70), {"$fraction": [-1, {"$int": str(2**70)}]}),
    (range(5, -(2**70), -2), {"$range": [5, {"$int": str(-(2**70))}, -2]}),
    (PosixPath("a/b"), {"$path": ["posix", "a/b"]}),
    (PurePosixPath("\udc80"), {"$path": ["pure-posix", {"$str": "7bKA"}]}),
    (PureWindowsPath("c:\\x"), {"$path": ["pure-windows", "c:\\x"]}),
    (math.inf, {"$float": "inf"}),
    (-math.inf, {"$float": "-inf"}),
    (2**64, {"$int": "18446744073709551616"}),
    (-(2**63) - 1, {"$int": "-9223372036854775809"}),
    (-(10**5000), {"$int": "-1" + "0" * 5000}),
    ("\ud800x", {"$str": "7aCAeA=="}),
    (b"\x00\xff", {"$bytes": "AP8="}),
    (bytearray(b"ab"), {"$bytearray": "YWI="}),
]


@pytest.mark.parametrize(("value", "tree"), FORMS, ids=[str(tree)[:40] for _, tree in FORMS])
def test_a_scalar_has_one_form_and_comes_back(value: Any, tree: Any) -> None:
    assert encode([value, (1,)])[0] == tree  # type: ignore[index]
    found = decode(tree, NONE)
    assert found == value
    assert type(found) is type(value)
    if type(value) is not int:  # of one with many digits there is no repr
        assert repr(found) == repr(value)
    if isinstance(value, (dt.datetime, dt.time)):
        assert (found.fold, repr(found.tzinfo)) == (value.fold, repr(value.tzinfo))


def test_a_nan_keeps_its_bits() -> None:
    assert encode(math.nan) == {"$float": "nan"}
    assert encode(NAN) == {"$float": "fff8000000000001"}
    assert struct.pack(">d", decode({"$float": "fff8000000000001"}, NONE)).hex() == "fff8000000000001"
    assert pack_float(2.5) == 2.5


class Zone(dt.tzinfo):
    """Of somebody's own, with a key as `ZoneInfo` has."""

    key = "Europe/Berlin"

    def utcoffset(self, when: dt.datetime | None, /) -> dt.timedelta:
        return dt.timedelta(0)

    def dst(self, when: dt.datetime | None, /) -> None: ...
    def tzname(self, when: dt.datetime | None, /) -> None: ...


# A file of one zone, UTC, of no name (RFC 8536): a header, six counts, one type of local time, its abbreviation.
TZIF = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"


@pytest.mark.parametrize("zone", [Zone(), ZoneInfo.from_file(io.BytesIO(TZIF))], ids=["own", "without a key"])
def test_a_zone_without_a_name_that_others_know_is_refused(zone: dt.tzinfo) -> None:
    for value in (dt.datetime(2026, 1, 1, tzinfo=zone), dt.time(1, tzinfo=zone)):
        with pytest.raises(ValueRefused) as caught:
            encode([value])
        assert caught.value.path == "[0]"
        name = type(zone).__qualname__
        assert caught.value.reason == f"the time zone is a {name}; use zoneinfo.ZoneInfo or datetime.timezone"


def test_an_integer_over_the_limit_is_refused_however_large_it_is() -> None:
    assert pack_int(10**INT_DIGITS - 1) == {"$int": "9" * INT_DIGITS}
    assert pack_int(1 - 10**INT_DIGITS) == {"$int": "-" + "9" * INT_DIGITS}
    for number in (10**INT_DIGITS, -(10**INT_DIGITS), 2**332_194, -(2**400_000)):
        with pytest.raises(ValueError, match="an integer of more than 100000 digits"):
            pack_int(number)


@pytest.mark.parametrize("digits", [19, 20, 599, 600, 601, 1200, 1201, 4301, INT_DIGITS])
def test_digits_are_read_whatever_their_number(digits: int) -> None:
    text = ("1234567890" * (digits // 10 + 1))[:digits]
    number = 0
    for start in range(0, digits, 500):
        part = text[start : start + 500]
        number = number * 10 ** len(part) + int(part)
    assert unpack_int(text) == number
    assert unpack_int({"$int": "-" + text}) == -number
    assert unpack_int(7) == 7


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"$int": "1" * (INT_DIGITS + 1)}, "not decimal digits"),
        ({"$int": ""}, "not decimal digits"),
        ({"$int": "--1"}, "not decimal digits"),
        ({"$int": "+1"}, "not decimal digits"),
        ({"$int": "1.0"}, "not decimal digits"),
        ({"$int": "\u0661"}, "not decimal digits"),
        ({"$float": "1.5"}, "not 16 hex digits"),
        ({"$float": "fff800000000000"}, "not 16 hex digits"),
        ({"$float": "fff80000000000011"}, "not 16 hex digits"),
        ({"$float": "zzzzzzzzzzzzzzzz"}, "non-hexadecimal number"),
        ({"$datetime": "2026-01-02T00:00:00+01:00"}, "the zone belongs in its own field"),
        ({"$datetime": {"at": "2026-01-02T00:00:00Z"}}, "the zone belongs in its own field"),
        ({"$time": "00:00:00+01:00"}, "the zone belongs in its own field"),
        ({"$time": {"at": "00:00:00Z"}}, "the zone belongs in its own field"),
        ({"$decimal": "1.0 "}, "not the text of a Decimal"),
        ({"$decimal": "1_0"}, "not the text of a Decimal"),
        ({"$bytes": "AA=A"}, ""),
        ({"$bytes": "A A="}, ""),
        ({"$bytes": "\u00e9"}, "'ascii' codec"),
        ({"$set": {"a": 1}}, "not a list"),
        ({"$tuple": 7}, "not a list"),
        ({"$complex": [1.0]}, "not enough values"),
        ({"$range": [1, 2]}, "not enough values"),
        ({"$timedelta": [1, 2]}, "not enough values"),
        ({"$path": ["nowhere", "x"]}, "'nowhere'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_form_of_a_scalar_is_named(tree: Any, reason: str) -> None:
    (tag,) = tree
    with pytest.raises(FormatError) as caught:
        decode([tree], NONE)
    assert caught.value.code == "value.tag"
    assert f"a {tag} that cannot be read: {reason}" in str(caught.value)
    assert decode([tree]) == [tree]


def test_numbers_within_other_tags_may_be_plain_or_tagged() -> None:
    assert unpack_float(1.5) == 1.5
    assert unpack_float({"$float": "-inf"}) == -math.inf
    assert unpack_float("3ff8000000000000") == 1.5
    assert unpack_bytes("AP8=") == b"\x00\xff"
    assert decode({"$datetime": {"at": "2026-01-02T03:04:05.000006", "fold": 1}}, NONE) == NAIVE.replace(
        fold=1
    )
