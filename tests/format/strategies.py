"""Hypothesis strategies for values and trees, and settings that make every run the same."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

STEADY = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
FEW = settings(STEADY, max_examples=40)

ZONES = st.sampled_from([
    None,
    dt.UTC,
    dt.timezone(dt.timedelta(hours=5, minutes=30)),
    dt.timezone(dt.timedelta(hours=-3), "BRT"),
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("UTC"),
])  # fmt: skip
texts = st.text(st.characters(codec=None), max_size=12)
numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(min_value=10**30, max_value=10**40),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0, -0.0, 1, 1.0, True, 2**63, 2**64, -(2**63), 1e16, 1e-5, 5e-324, 2.0**70]),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    texts,
    st.binary(max_size=20),
    st.binary(max_size=20).map(bytearray),
    st.decimals(allow_nan=False),
    st.sampled_from([Decimal("-0"), Decimal("1E+10"), Decimal("0.10"), Decimal("Infinity")]),
    st.uuids(),
    st.fractions(),
    st.complex_numbers(allow_nan=False),
    st.dates(),
    st.times(timezones=st.sampled_from([None, dt.UTC])),
    st.timedeltas(),
    st.builds(
        lambda when, zone, fold: when.replace(tzinfo=zone, fold=fold),
        st.datetimes(),
        ZONES,
        st.integers(0, 1),
    ),
    st.builds(range, st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 3)),
    texts.map(lambda text: PurePosixPath(text.replace("\0", ""))),
    st.sampled_from([PureWindowsPath("c:/x"), PurePosixPath()]),
)
hashables = st.one_of(
    st.none(), st.booleans(), st.integers(), texts, st.binary(max_size=5), st.tuples(st.integers(), texts)
)
keys = st.one_of(texts, st.sampled_from(["$ref", "$map", "$list", "$", "$int"]), hashables)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.sets(hashables, max_size=4),
        st.frozensets(hashables, max_size=4),
    ),
    max_leaves=12,
)
trees: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=30),
        st.sampled_from(["x" * 1500, "y" * 1024, "snow\u2603" * 400]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=8), inner, max_size=5)
    ),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    """Equal with equal types, order and bits: stricter than ``==``."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack(">d", left) == struct.pack(">d", right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=False)
        return len(left) == len(right) and all(same(a, c) and same(b, d) for (a, b), (c, d) in pairs)
    if isinstance(left, (set, frozenset)):
        return left == right and sorted(map(repr, left)) == sorted(map(repr, right))
    if isinstance(left, Decimal):
        return str(left) == str(right)
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    if isinstance(left, (dt.datetime, dt.time)):
        return bool(left == right) and left.fold == right.fold and repr(left) == repr(right)
    return bool(left == right)
