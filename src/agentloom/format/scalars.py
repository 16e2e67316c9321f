"""Tags of the standard library's scalar types: both directions side by side, so that they cannot drift apart.

Each pair is exact: ``unpack(pack(x)) == x`` with equal type. Unpacking raises ``ValueError``, ``TypeError`` or another
plain error on bad input; ``decoding`` turns it into a ``FormatError``.
"""

from __future__ import annotations

import base64
import math
import struct
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any, cast
from uuid import UUID

from agentloom.format.canonical import Tree
from agentloom.format.guards import is_map
from agentloom.format.limits import INT_BITS, INT_DIGITS, INT_MAX, INT_MIN
from agentloom.format.words import kind_of

__all__ = [
    "SCALARS",
    "UNPACK",
    "Pack",
    "Unpack",
    "pack_float",
    "pack_int",
    "pack_str",
    "unpack_bytes",
    "unpack_float",
    "unpack_int",
    "unpack_str",
]

_QUIET_NAN = struct.pack(">d", math.nan)
_PATHS: dict[str, type] = {
    "posix": PosixPath,
    "windows": WindowsPath,
    "pure-posix": PurePosixPath,
    "pure-windows": PureWindowsPath,
}
_PATH_KINDS = {cls: kind for kind, cls in _PATHS.items()}


_AT_ONCE = 600  # digits: what Python converts in any case, however low its limit was set


def pack_int(value: int) -> Tree:
    """An integer of any size. The decimal module converts without Python's limit on digits, and fast."""
    if INT_MIN <= value <= INT_MAX:
        return value
    digits = str(Decimal(value)) if value.bit_length() <= INT_BITS else ""
    if not 0 < len(digits.removeprefix("-")) <= INT_DIGITS:
        raise ValueError(f"an integer of more than {INT_DIGITS} digits")
    return {"$int": digits}


def unpack_int(payload: Any) -> int:
    """The integer of ``$int``, or of a plain number inside another tag."""
    if type(payload) is int:
        return payload
    text: str = payload["$int"] if is_map(payload) else payload
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > INT_DIGITS:
        raise ValueError("not decimal digits")
    return -_from_digits(digits) if text[:1] == "-" else _from_digits(digits)


def _from_digits(digits: str) -> int:
    """In halves: a conversion of 100,000 digits at once takes a second, and a file can hold a hundred of them."""
    if len(digits) <= _AT_ONCE:
        return int(digits)
    half = len(digits) // 2
    tens: int = 10**half
    return _from_digits(digits[:-half]) * tens + _from_digits(digits[-half:])


def pack_float(value: float) -> Tree:
    """A float; NaN keeps its bits."""
    if math.isfinite(value):
        return value
    if math.isinf(value):
        return {"$float": "inf" if value > 0 else "-inf"}
    bits = struct.pack(">d", value)
    return {"$float": "nan" if bits == _QUIET_NAN else bits.hex()}


def unpack_float(payload: Any) -> float:
    """The float of ``$float``, or of a plain number inside another tag."""
    if type(payload) is float:
        return payload
    text: str = payload["$float"] if is_map(payload) else payload
    if text in ("nan", "inf", "-inf"):
        return float(text)
    if len(text) != 16:
        raise ValueError("not 16 hex digits")
    value: float = struct.unpack(">d", bytes.fromhex(text))[0]
    return value


def pack_str(value: str) -> Tree:
    """Text; lone surrogates, which UTF-8 cannot hold, go as bytes."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$str": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return value


def unpack_str(payload: Any) -> str:
    """The text of ``$str``."""
    return unpack_bytes(payload).decode("utf-8", "surrogatepass")


def unpack_bytes(payload: Any) -> bytes:
    """Strict base64."""
    return base64.b64decode(payload.encode("ascii"), validate=True)


def _pack_timezone(zone: tzinfo | None) -> dict[str, Tree]:
    if zone is None:
        return {}
    if _is_of_pydantic(
        zone
    ):  # what it reads from "...Z" or "+02:00": an offset, and comes back as Python's own
        zone = timezone(cast("timedelta", zone.utcoffset(None)))
    if type(zone) is timezone:
        offset = zone.utcoffset(None)
        fields: dict[str, Tree] = {"offset": _pack_timedelta_list(offset)}
        plain = timezone(offset)
        return fields if repr(plain) == repr(zone) else {**fields, "name": pack_str(str(zone))}
    zoneinfo = sys.modules.get("zoneinfo")
    key = getattr(zone, "key", None)
    if zoneinfo is not None and type(zone) is zoneinfo.ZoneInfo and type(key) is str:
        return {"zone": key}
    raise ValueError(f"the time zone is {kind_of(zone)}; use zoneinfo.ZoneInfo or datetime.timezone")


def _is_of_pydantic(zone: tzinfo) -> bool:
    core = sys.modules.get("pydantic_core")
    return core is not None and type(zone) is getattr(core, "TzInfo", None)


def _unpack_timezone(payload: dict[str, Any]) -> tzinfo | None:
    if "zone" in payload:
        from zoneinfo import ZoneInfo  # only where it is needed: it reads the time zone database

        return ZoneInfo(payload["zone"])
    if "offset" not in payload:
        return None
    offset = _unpack_timedelta(payload["offset"])
    return timezone(offset, _text(payload["name"])) if "name" in payload else timezone(offset)


def _text(payload: Any) -> str:
    return payload if type(payload) is str else unpack_str(payload["$str"])


def _pack_clock(text: str, zone: tzinfo | None, fold: int) -> Tree:
    fields = _pack_timezone(zone)
    if fold:
        fields["fold"] = fold
    return {"at": text, **fields} if fields else text


def _pack_datetime(value: datetime) -> Tree:
    return _pack_clock(value.replace(tzinfo=None).isoformat(), value.tzinfo, value.fold)


def _unpack_datetime(payload: Any) -> datetime:
    if type(payload) is str:
        payload = {"at": payload}
    naive = datetime.fromisoformat(payload["at"])
    if naive.tzinfo is not None:
        raise ValueError("the zone belongs in its own field")
    return naive.replace(tzinfo=_unpack_timezone(payload), fold=payload.get("fold", 0))


def _pack_time(value: time) -> Tree:
    return _pack_clock(value.replace(tzinfo=None).isoformat(), value.tzinfo, value.fold)


def _unpack_time(payload: Any) -> time:
    if type(payload) is str:
        payload = {"at": payload}
    naive = time.fromisoformat(payload["at"])
    if naive.tzinfo is not None:
        raise ValueError("the zone belongs in its own field")
    return naive.replace(tzinfo=_unpack_timezone(payload), fold=payload.get("fold", 0))


def _pack_timedelta_list(value: timedelta) -> Tree:
    return [value.days, value.seconds, value.microseconds]


def _unpack_timedelta(payload: Any) -> timedelta:
    days, seconds, microseconds = payload
    return timedelta(days=days, seconds=seconds, microseconds=microseconds)


def _unpack_decimal(payload: Any) -> Decimal:
    value = Decimal(payload)
    if str(value) != payload:
        raise ValueError("not the text of a Decimal")
    return value


def _unpack_complex(payload: Any) -> complex:
    real, imaginary = payload
    return complex(unpack_float(real), unpack_float(imaginary))


def _unpack_fraction(payload: Any) -> Fraction:
    numerator, denominator = payload
    return Fraction(unpack_int(numerator), unpack_int(denominator))


def _unpack_range(payload: Any) -> range:
    start, stop, step = payload
    return range(unpack_int(start), unpack_int(stop), unpack_int(step))


def _pack_path(value: Any) -> Tree:
    return [_PATH_KINDS[type(value)], pack_str(str(value))]


def _unpack_path(payload: Any) -> object:
    kind, text = payload
    return _PATHS[kind](_text(text))


Pack = Callable[[Any], Tree]
Unpack = Callable[[Any], object]

SCALARS: dict[type, tuple[str, Pack, Unpack]] = {
    datetime: ("$datetime", _pack_datetime, _unpack_datetime),
    date: ("$date", date.isoformat, date.fromisoformat),
    time: ("$time", _pack_time, _unpack_time),
    timedelta: ("$timedelta", _pack_timedelta_list, _unpack_timedelta),
    Decimal: ("$decimal", str, _unpack_decimal),
    UUID: ("$uuid", str, UUID),
    complex: ("$complex", lambda v: [pack_float(v.real), pack_float(v.imag)], _unpack_complex),
    Fraction: ("$fraction", lambda v: [pack_int(v.numerator), pack_int(v.denominator)], _unpack_fraction),
    range: ("$range", lambda v: [pack_int(v.start), pack_int(v.stop), pack_int(v.step)], _unpack_range),
    **dict.fromkeys(_PATH_KINDS, ("$path", _pack_path, _unpack_path)),
}
"""Exact type -> its tag, how its payload is written, how it is read."""

UNPACK: dict[str, Unpack] = {tag: unpack for tag, _, unpack in SCALARS.values()} | {
    "$int": unpack_int,
    "$float": unpack_float,
    "$str": unpack_str,
}
"""Tag -> how its payload is read."""
