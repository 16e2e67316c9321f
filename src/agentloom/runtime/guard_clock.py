"""Virtual clocks: ``time`` and ``datetime`` inside a run.

Functions of ``time`` are replaced in their module. ``datetime.now`` is replaced in the dictionary of the type itself,
so that the class stays the one that it is: values keep their type, compare, pickle and validate as ever, for every
module that has the class under whatever name. (A class of one's own in its place breaks ``isinstance``, pickles and
compiled schemas; exchanging pointers in C changes the clock of every thread and task.)
"""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, cast

from agentloom.runtime.boundary import call_inline
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_names import NAMES, stand_in
from agentloom.runtime.host import perform_sleep_sync, sleep_spec
from agentloom.runtime.scope import here
from agentloom.runtime.session import Session

__all__ = ["REAL_TIME", "holds", "install"]

_FUNCTIONS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "sleep", "gmtime",
    "localtime", "ctime", "asctime", "strftime", "mktime",
)  # fmt: skip
_REAL: Mapping[str, Any] = MappingProxyType(
    {name: getattr(time, name) for name in _FUNCTIONS if hasattr(time, name)}
)

REAL_TIME = ModuleType("time", time.__doc__)
"""The module as it was: for code that waits in real time."""
REAL_TIME.__dict__.update(vars(time))

_SECOND = 1_000_000_000
_Read = Callable[[Session], int]


def _wall(session: Session) -> int:
    return session.guard.start + session.guard.elapsed(session)


def _monotonic(session: Session) -> int:
    return session.guard.monotonic + session.guard.elapsed(session)


def _worked(session: Session) -> int:
    return session.guard.elapsed(session)


_CLOCKS: tuple[tuple[str, _Read], ...] = (
    ("time", _wall),
    ("monotonic", _monotonic),
    ("perf_counter", _monotonic),
    ("process_time", _worked),
    ("thread_time", _worked),
)


def _seconds(real: Callable[[], float], read: _Read) -> Callable[[object], float]:
    def clock(_: object) -> float:
        if here() is None:
            return real()
        session = acting()
        return real() if session is None else read(session) / 1e9

    return clock


def _nanoseconds(real: Callable[[], int], read: _Read) -> Callable[[object], int]:
    def clock(_: object) -> int:
        if here() is None:
            return real()
        session = acting()
        return real() if session is None else read(session)

    return clock


def _by_number(real: Callable[[int], Any], convert: Callable[[int], Any]) -> Callable[..., Any]:
    """``clock_gettime``: the clocks of the system by number; those that nobody knows are real."""
    reads: dict[int, _Read] = {}
    for prefix, read in (("CLOCK_REALTIME", _wall), ("CLOCK_TAI", _wall), ("CLOCK_PROCESS", _worked),
                         ("CLOCK_THREAD", _worked), ("CLOCK_", _monotonic)):  # fmt: skip
        for name, number in vars(time).items():
            if name.startswith(prefix):
                reads.setdefault(number, read)

    def clock(_: object, clk_id: int, /) -> Any:
        session = acting()
        read = reads.get(clk_id)
        return real(clk_id) if session is None or read is None else convert(read(session))

    return clock


# -- what follows from the clock ---------------------------------------------------------------------------------------


def _zoned(name: str) -> Callable[..., Any]:
    """``gmtime``, ``localtime``, ``ctime``: of now where no time is given; local time in the zone of the recording."""
    real = _REAL[name]

    def function(_: object, *args: Any) -> Any:
        session = acting()
        if session is None or len(args) > 1:
            return real(*args)
        seconds = args[0] if args and args[0] is not None else _wall(session) / 1e9
        zone = session.guard.zone
        if zone is None or name == "gmtime" or not isinstance(seconds, int | float):
            return real(seconds)
        local = zone.struct(seconds)
        return local if name == "localtime" else _REAL["asctime"](local)

    return function


def _of_now(name: str, before: int) -> Callable[..., Any]:
    """``asctime`` and ``strftime``, which take the time that they write after ``before`` other arguments."""
    real = _REAL[name]

    def function(_: object, *args: Any) -> Any:
        if len(args) != before or acting() is None:
            return real(*args)
        return real(*args, cast(Any, time).localtime())

    return function


def _mktime(_: object, fields: Any, /) -> float:
    session = acting()
    if session is None or session.guard.zone is None:
        return cast(float, _REAL["mktime"](fields))
    return session.guard.zone.seconds(fields)


def _sleep(_: object, seconds: Any, /) -> None:
    session = acting()
    if session is None or session.engine.thread not in (None, threading.get_ident()):
        _REAL["sleep"](seconds)
        return
    try:
        wait = seconds if type(seconds) is int or type(seconds) is float else float(seconds)
    except (TypeError, ValueError):
        wait = 0.0
    if 0 < wait < _LONGEST:
        call_inline(sleep_spec(wait), perform_sleep_sync)
    else:
        _REAL["sleep"](seconds)  # no wait, or an error, which it raises


_LONGEST = 9e9  # seconds; time.sleep takes no more


# -- datetime ----------------------------------------------------------------------------------------------------------


def _dictionary(owner: type) -> dict[str, Any]:
    """The dictionary of a built-in type itself."""
    (names,) = gc.get_referents(owner.__dict__)
    return cast("dict[str, Any]", names)


_DATETIME = _dictionary(dt.datetime)
_DATE = _dictionary(dt.date)
_descriptors: dict[str, Any] = {
    "now": _DATETIME["now"], "utcnow": _DATETIME["utcnow"], "fromtimestamp": _DATETIME["fromtimestamp"],
    "date.fromtimestamp": _DATE["fromtimestamp"],
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
    if here() is None and cls is _datetime:
        return _real_now(tz)
    session = acting()
    if session is None:
        return _bound("now", cls)(tz)
    zone = session.guard.zone
    if tz is None and zone is not None:
        return _moment(cls, _wall(session), zone.zone).replace(tzinfo=None)
    return _moment(cls, _wall(session), tz)


def utcnow(cls: type) -> Any:
    """``datetime.utcnow``."""
    if sys.version_info >= (3, 12):  # said here, or it would be said of this line
        warnings.warn(
            "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware"
            " objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC).",
            DeprecationWarning,
            stacklevel=2,
        )
    session = acting()
    if session is None and sys.version_info < (3, 12):
        return _bound("utcnow", cls)()
    at = _REAL["time_ns"]() if session is None else _wall(session)
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


# -- in place ----------------------------------------------------------------------------------------------------------


def install() -> None:
    """Replace the clocks. ``date.today`` and ``datetime.today`` need nothing: they ask ``time.time``."""
    made: dict[str, Callable[..., Any]] = {}
    for name, read in _CLOCKS:
        if name in _REAL:
            made[name] = _seconds(_REAL[name], read)
            made[f"{name}_ns"] = _nanoseconds(_REAL[f"{name}_ns"], read)
    if "clock_gettime" in _REAL:
        made["clock_gettime"] = _by_number(_REAL["clock_gettime"], lambda read: read / 1e9)
        made["clock_gettime_ns"] = _by_number(_REAL["clock_gettime_ns"], lambda read: read)
    made |= {name: _zoned(name) for name in ("gmtime", "localtime", "ctime")}
    made |= {
        "asctime": _of_now("asctime", 0),
        "strftime": _of_now("strftime", 1),
        "mktime": _mktime,
        "sleep": _sleep,
    }
    for name, function in made.items():
        NAMES.put(time, name, stand_in(time, _REAL[name], function), _REAL[name])
        _standing[name] = getattr(time, name)
    _replace(dt.datetime, {"now": now, "utcnow": utcnow, "fromtimestamp": _fromtimestamp})
    _replace(dt.date, {"fromtimestamp": _date_fromtimestamp})


def _replace(owner: type, functions: Mapping[str, Callable[..., Any]]) -> None:
    names = _dictionary(owner)
    for name, function in functions.items():
        original = names[name]
        function.__name__ = name
        function.__qualname__ = original.__qualname__
        function.__doc__ = original.__doc__
        names[name] = classmethod(function)
        NAMES.method(owner, name)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


_standing: dict[str, Any] = {}


def holds() -> None:
    """Put back what somebody has taken out: a test that had replaced a clock before the guard was installed, and then
    restored what it knew. What somebody else has put there stays."""
    for name, function in _standing.items():
        if getattr(time, name) is _REAL[name]:
            setattr(time, name, function)
