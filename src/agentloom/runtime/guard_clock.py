"""Virtual clocks: the functions of ``time`` inside a run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import get_ident  # before the guard watches who asks for it by its name
from types import ModuleType
from typing import Any, cast

from agentloom.runtime.boundary import call_inline
from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_names import NAMES, stand_in
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.host import perform_sleep_sync, sleep_spec
from agentloom.runtime.scope import in_context
from agentloom.runtime.session import Session
from agentloom.runtime.strands import polled

__all__ = ["REAL_TIME", "holds", "install", "wall"]

_REAL = REAL_CLOCKS

REAL_TIME = ModuleType("time", time.__doc__)
"""The module as it was: for code that waits in real time."""
REAL_TIME.__dict__.update({**vars(time), **REAL_CLOCKS})

_SECOND = 1_000_000_000
_Read = Callable[[Session], int]


def wall(session: Session) -> int:
    """What the run's wall clock shows: nanoseconds since 1970."""
    return session.guard.start + session.guard.elapsed(session)


def _monotonic(session: Session) -> int:
    return session.guard.monotonic + session.guard.elapsed(session)


def _worked(session: Session) -> int:
    return session.guard.elapsed(session)


_CLOCKS: tuple[tuple[str, _Read], ...] = (
    ("time", wall),
    ("monotonic", _monotonic),
    ("perf_counter", _monotonic),
    ("process_time", _worked),
    ("thread_time", _worked),
)


def _seconds(real: Callable[[], float], read: _Read) -> Callable[[object], float]:
    def clock(_: object) -> float:
        # As ``acting`` asks, in place: outside of runs this is called more often than anything else here.
        if (COLLECTING and get_ident() in COLLECTING) or (scope := in_context()) is None:
            return real()
        session = acting(scope)
        return real() if session is None else read(session) / 1e9

    return clock


def _nanoseconds(real: Callable[[], int], read: _Read) -> Callable[[object], int]:
    def clock(_: object) -> int:
        # As ``acting`` asks, in place: outside of runs this is called more often than anything else here.
        if (COLLECTING and get_ident() in COLLECTING) or (scope := in_context()) is None:
            return real()
        session = acting(scope)
        return real() if session is None else read(session)

    return clock


def _by_number(real: Callable[[int], Any], convert: Callable[[int], Any]) -> Callable[..., Any]:
    """``clock_gettime``: the clocks of the system by number."""
    reads: dict[int, _Read] = {}
    for prefix, read in (("CLOCK_REALTIME", wall), ("CLOCK_TAI", wall), ("CLOCK_PROCESS", _worked),
                         ("CLOCK_THREAD", _worked), ("CLOCK_", _monotonic)):  # fmt: skip
        for name, number in vars(time).items():
            if name.startswith(prefix):
                reads.setdefault(number, read)

    def clock(_: object, clk_id: int, /) -> Any:
        session = acting()
        if session is None:
            return real(clk_id)
        read = reads.get(clk_id)
        if read is None:  # of a thread or a process: what these have worked
            real(clk_id)  # raises where there is no such clock
            read = _worked
        return convert(read(session))

    return clock


# -- what follows from the clock ---------------------------------------------------------------------------------------


def _zoned(name: str) -> Callable[..., Any]:
    """``gmtime``, ``localtime``, ``ctime``: of now where no time is given; local time in the zone of the recording."""
    real = _REAL[name]

    def function(_: object, *args: Any) -> Any:
        session = acting()
        if session is None or len(args) > 1:
            return real(*args)
        seconds = args[0] if args and args[0] is not None else wall(session) / 1e9
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
    if session is None:
        _REAL["sleep"](seconds)
        return
    kind: type[object] = type(seconds)  # pyright: ignore[reportUnknownVariableType]
    number = hasattr(kind, "__float__") or hasattr(kind, "__index__")
    wait = 0.0 if not number else seconds if kind is int else float(seconds)
    if 0 < wait < _LONGEST:
        call_inline(sleep_spec(wait), perform_sleep_sync)
    elif not number or wait != 0 or session.baton is None:
        _REAL["sleep"](seconds)  # no wait, or an error, which it raises
    elif not polled():
        _REAL["sleep"](_POLLED)


_POLLED = 0.0002
"""Seconds for which a thread that polls leaves the processor to others."""
_LONGEST = 9e9  # seconds; time.sleep takes no more


def _times(_: object) -> Any:
    """``os.times``: the run has worked as long as it took."""
    session = acting()
    if session is None:
        return _real_times()
    worked = session.guard.elapsed(session)
    return os.times_result((worked / 1e9, 0.0, 0.0, 0.0, (session.guard.monotonic + worked) / 1e9))


_real_times = os.times


# -- in place ----------------------------------------------------------------------------------------------------------


def install() -> None:
    """Replace the clocks of ``time``."""
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
        _standing[name] = stand_in(time, _REAL[name], function)
        NAMES.note(_REAL[name], _standing[name])
    NAMES.put(os, "times", stand_in(os, _real_times, _times), _real_times)
    holds()


_standing: dict[str, Any] = {}


def holds() -> None:
    """Put in place what is not: somebody had another clock there when the guard was installed, or has restored the one
    that he knew. What somebody else has there now stays."""
    for name, function in _standing.items():
        if getattr(time, name) is _REAL[name]:
            setattr(time, name, function)
