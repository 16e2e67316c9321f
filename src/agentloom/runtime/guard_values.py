"""Values of modules that are of the process: ``sys.argv``, and local time as ``time.tzname`` and its like tell it.

Reading an attribute of a module calls nothing. ``sys.argv`` is replaced by a list that looks where it is read. The
attributes of ``time`` are replaced only in a process that replays a run of another time zone: by descriptors in the
type of modules, which pass on for every other module, so that ``time`` keeps its type and its functions their pace.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, cast

from agentloom.runtime.finding import done_for_own
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_types import changed, names_of
from agentloom.runtime.guard_zone import Zone

__all__ = ["hold_arguments", "install_zone_values"]

# -- sys.argv ----------------------------------------------------------------------------------------------------------

_AS_EVER = frozenset(
    ("__class__", "__class_getitem__", "__delattr__", "__dir__", "__doc__", "__getattribute__", "__getstate__",
     "__hash__", "__init__", "__init_subclass__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__",
     "__subclasshook__")
)  # fmt: skip


class _Arguments(list[str]):
    """The command line of the process. Inside a run, for the agent's own code: as it was when the run first read it,
    and what the run does to it stays in the run."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, (list(self),)


_copied: Callable[[list[str]], list[str]] = cast(Any, list).copy


def _arguments(frame: Any, real: list[str]) -> list[str]:
    """What ``sys.argv`` is for the code in ``frame``."""
    session = acting()
    if session is None or not done_for_own(frame, session.engine.places):
        return real
    states, environment = session.guard.states, session.guard.environment
    key = ("sys", "argv")
    if key not in states and environment is not None:
        found = environment.fact("sys.argv", lambda: {"is": _copied(real)})
        states[key] = list(found["is"])
    return cast("list[str]", states.get(key, real))


def _method(name: str) -> Callable[..., Any]:
    real: Any = getattr(list, name)

    def method(self: _Arguments, *args: Any, **kwargs: Any) -> Any:
        held = _arguments(sys._getframe(1), self)  # pyright: ignore[reportPrivateUsage]
        return real(held, *args, **kwargs)

    method.__name__, method.__qualname__, method.__doc__ = name, real.__qualname__, real.__doc__
    return method


for _name in dir(list):
    if _name not in _AS_EVER:
        setattr(_Arguments, _name, _method(_name))


def hold_arguments() -> None:
    """Let ``sys.argv`` be the run's own inside runs, where it is a plain list."""
    if type(sys.argv) is list:
        sys.argv = _Arguments(sys.argv)


# -- time.tzname -------------------------------------------------------------------------------------------------------

_NAMES = ("timezone", "altzone", "daylight", "tzname")
_YEAR = (365 * 24 + 6) * 3600  # seconds; as Python counts to find the middles of winter and summer


def _names(module: ModuleType) -> dict[str, Any]:
    return module.__dict__


_TIME = _names(time)


class _OfModule:
    """An attribute of modules: of ``time`` the run's own inside a run, of every other module its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.real: Any = _TIME.pop(name)  # not there, or code that is run often would read it past this

    def __get__(self, module: Any, owner: object = None) -> Any:
        if module is not time:
            if module is None:
                return self
            try:
                return _names(module)[self.name]
            except KeyError:
                text = f"module {module.__name__!r} has no attribute {self.name!r}"
                raise AttributeError(text, name=self.name, obj=module) from None
        session = acting()
        zone = None if session is None else session.guard.zone
        if session is None or zone is None:
            return self.real
        return _of_zone(zone, session.guard.start // 1_000_000_000)[self.name]

    def __set__(self, module: Any, value: object) -> None:
        if module is time:
            self.real = value
        else:
            _names(module)[self.name] = value

    def __delete__(self, module: Any) -> None:
        if module is time or self.name not in _names(module):
            raise AttributeError(self.name)
        del _names(module)[self.name]


def _of_zone(zone: Zone, at: int) -> dict[str, Any]:
    """The attributes of ``time`` as Python makes them when it starts, in ``zone`` at ``at`` (seconds since 1970)."""
    winter = at // _YEAR * _YEAR
    found = [
        datetime.fromtimestamp(moment, UTC).astimezone(zone.zone) for moment in (winter, winter + _YEAR // 2)
    ]
    (first, name), (second, other) = ((_west(local), local.tzname() or "") for local in found)
    if first < second:  # the south: its summer is at the turn of the year
        first, second, name, other = second, first, other, name
    return {"timezone": first, "altzone": second, "daylight": int(first != second), "tzname": (name, other)}


def _west(local: datetime) -> int:
    """Seconds west of UTC."""
    offset = local.utcoffset()
    return 0 if offset is None else -int(offset.total_seconds())


_attributes: list[_OfModule] = []


def install_zone_values() -> None:
    """A run of another time zone is replayed: ``time.tzname`` and its like are the run's own in it. Once."""
    if _attributes:
        return
    kind = names_of(ModuleType)
    for name in _NAMES:
        kind[name] = made = _OfModule(name)
        _attributes.append(made)
    changed(ModuleType)
    real: Callable[[], None] | None = getattr(time, "tzset", None)
    if real is not None:
        _after_tzset(real)


def _after_tzset(real: Callable[[], None]) -> None:
    def tzset() -> None:
        real()
        for made in _attributes:
            made.real = _TIME.pop(made.name, made.real)

    cast(Any, time).tzset = tzset
