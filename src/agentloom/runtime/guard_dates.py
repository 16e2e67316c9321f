"""Virtual dates: ``datetime`` and ``date`` inside a run.

``datetime.now`` is replaced in the dictionary of the type itself, so that the class stays the one that it is: values
keep their type, compare, pickle and validate as ever, for every module that has the class under whatever name. (A
class of one's own in its place breaks ``isinstance``, pickles and compiled schemas; exchanging pointers in C changes
the clock of every thread and task.)
"""

from __future__ import annotations

import datetime as dt
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_clock import wall
from agentloom.runtime.guard_names import NAMES, called_as
from agentloom.runtime.guard_types import changed, names_of
from agentloom.runtime.scope import in_context

__all__ = ["in_another_zone", "install"]

_time_ns = time.time_ns
_TOLD: bool = sys.version_info[:2] >= (3, 12)
"""Whether this Python says that ``utcnow`` is deprecated."""


_DATETIME = names_of(dt.datetime)
_DATE = names_of(dt.date)
_descriptors: dict[str, Any] = {
    "now": _DATETIME["now"], "utcnow": _DATETIME["utcnow"], "fromtimestamp": _DATETIME["fromtimestamp"],
    "date.fromtimestamp": _DATE["fromtimestamp"],
    "astimezone": _DATETIME["astimezone"],
    "timestamp": _DATETIME["timestamp"],
}  # fmt: skip
_real_now = dt.datetime.now
_datetime = dt.datetime


def _bound(name: str, cls: type) -> Callable[..., Any]:
    return cast("Callable[..., Any]", _descriptors[name].__get__(None, cls))


def _moment(cls: type, nanoseconds: int, zone: dt.tzinfo | None) -> Any:
    seconds, rest = divmod(nanoseconds // 1000, 1_000_000)
    return _bound("fromtimestamp", cls)(seconds, zone).replace(microsecond=rest)


def now(cls: type, tz: dt.tzinfo | None = None) -> Any:
    """``datetime.now``."""
    if not COLLECTING and in_context() is None and cls is _datetime:
        return _real_now(tz)  # as ``acting`` asks, in place
    session = acting()
    if session is None:
        return _bound("now", cls)(tz)
    zone = session.guard.zone
    if tz is None and zone is not None:
        return _moment(cls, wall(session), zone.zone).replace(tzinfo=None)
    return _moment(cls, wall(session), tz)


def utcnow(cls: type) -> Any:
    """``datetime.utcnow``."""
    if _TOLD:  # said here, or it would be said of this line
        warnings.warn(
            "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware"
            " objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC).",
            DeprecationWarning,
            stacklevel=2,
        )
    session = acting()
    if session is None:
        at = _time_ns()
        if not _TOLD:
            return _bound("utcnow", cls)()
    else:
        at = wall(session)
    return _moment(cls, at, dt.UTC).replace(tzinfo=None)


def _fromtimestamp(cls: type, timestamp: float, tz: dt.tzinfo | None = None) -> Any:
    session = acting() if tz is None else None
    if session is None or session.guard.zone is None:
        return _bound("fromtimestamp", cls)(timestamp, tz)
    return _bound("fromtimestamp", cls)(timestamp, session.guard.zone.zone).replace(tzinfo=None)


def _date_fromtimestamp(cls: type, timestamp: float, /) -> Any:
    session = acting()
    if session is None or session.guard.zone is None:
        return _bound("date.fromtimestamp", cls)(timestamp)
    local = session.guard.zone.local(timestamp)
    return cls(local.year, local.month, local.day)


def _astimezone(self: dt.datetime, tz: dt.tzinfo | None = None) -> dt.datetime:
    session = acting()
    zone = None if session is None else session.guard.zone
    if zone is None or (tz is not None and self.tzinfo is not None):
        return cast("dt.datetime", _descriptors["astimezone"](self, tz))
    if self.tzinfo is None:
        self = self.replace(tzinfo=zone.zone)
    if tz is not None:
        return cast("dt.datetime", _descriptors["astimezone"](self, tz))
    local = cast("dt.datetime", _descriptors["astimezone"](self, zone.zone))
    return local.replace(tzinfo=dt.timezone(local.utcoffset() or dt.timedelta(), local.tzname() or ""))


def _timestamp(self: dt.datetime) -> float:
    session = acting() if self.tzinfo is None else None
    zone = None if session is None else session.guard.zone
    return cast(float, _descriptors["timestamp"](self if zone is None else self.replace(tzinfo=zone.zone)))


def in_another_zone() -> None:
    """A replay is in another zone than this process: replace what turns moments into local time and back. Once."""
    if _DATETIME["timestamp"] is _descriptors["timestamp"]:
        _replace(dt.datetime, {"astimezone": _astimezone, "timestamp": _timestamp}, plain=True)


def install() -> None:
    """Replace ``now`` and ``utcnow``. ``date.today`` and ``datetime.today`` need nothing: they ask ``time.time``."""
    _replace(dt.datetime, {"now": now, "utcnow": utcnow, "fromtimestamp": _fromtimestamp})
    _replace(dt.date, {"fromtimestamp": _date_fromtimestamp})


def _replace(owner: type, functions: Mapping[str, Callable[..., Any]], *, plain: bool = False) -> None:
    names = names_of(owner)
    for name, function in functions.items():
        original = names[name]
        called_as(function, original)
        names[name] = function if plain else classmethod(function)
        if not plain:
            NAMES.method(owner, name)
    changed(owner)
