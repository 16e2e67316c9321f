"""Virtual identifiers: ``uuid`` and packages like it, inside a run; and what modules keep between two identifiers.

An identifier is made from the run's clock and entropy. Generators of time-ordered identifiers keep their last time
stamp for the whole process: it is the run's own in a run, or its identifiers would depend on the runs before it.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import uuid
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, cast

from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_names import NAMES, called_as, stand_in
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.scope import Scope, here, in_context
from agentloom.runtime.session import Session

__all__ = ["install", "install_loaded"]

_SINCE_1582 = 0x01B21DD213814000
"""100-nanosecond steps from the beginning of time in UUIDs to 1970."""

_KEEPERS = {
    "langgraph.checkpoint.base.id": ("_last_v6_timestamp", ("uuid6",)),
    "pydantic_ai._uuid": ("_last_timestamp_v7", ("uuid7",)),
}
"""Modules with a time stamp of their own: its name, and the functions that use it."""

_LOADED: set[str] = set()
_lock = free_in_children(threading.RLock())


def _random(session: Session, bits: int) -> int:
    size = (bits + 7) // 8
    return int.from_bytes(session.guard.draw(cast(Scope, here()).path, size), "big") & ((1 << bits) - 1)


def _node(session: Session) -> int:
    """A node number of the run, marked as none of a network card (RFC 9562, 6.10)."""
    return int.from_bytes(session.guard.fixed("node", 6), "big") | 1 << 40


def _stamp(session: Session) -> int:
    """100-nanosecond steps since 1582, each time more."""
    guard = session.guard
    now = (guard.start + guard.elapsed(session)) // 100 + _SINCE_1582
    guard.last_stamp = max(now, guard.last_stamp + 1)
    return guard.last_stamp


def _versioned(number: int, version: int) -> int:
    return (number & ~(0xF << 76) & ~(0x3 << 62)) | version << 76 | 0x2 << 62


def _v1(session: Session, node: int | None, sequence: int | None) -> int:
    at = _stamp(session)
    low, mid, high = at & 0xFFFFFFFF, at >> 32 & 0xFFFF, at >> 48 & 0x0FFF
    return _versioned(low << 96 | mid << 80 | high << 64 | _tail(session, node, sequence), 1)


def _v6(session: Session, node: int | None, sequence: int | None, at: int | None = None) -> int:
    at = _stamp(session) if at is None else at
    return _versioned((at >> 12) << 80 | (at & 0xFFF) << 64 | _tail(session, node, sequence), 6)


def _tail(session: Session, node: int | None, sequence: int | None) -> int:
    sequence = _random(session, 14) if sequence is None else sequence & 0x3FFF
    return sequence << 48 | ((_node(session) if node is None else node) & 0xFFFFFFFFFFFF)


def _v4(session: Session) -> int:
    return _versioned(_random(session, 128), 4)


def _v7(session: Session, seconds: int | None = None, nanoseconds: int | None = None) -> int:
    """Milliseconds, twelve bits of the rest of the millisecond, random bits: in the order in which they were made."""
    given = None if seconds is None else seconds * 1_000_000_000 + (nanoseconds or 0)
    at = (_stamp(session) - _SINCE_1582) * 100 if given is None else given
    milliseconds, rest = divmod(at, 1_000_000)
    return _versioned(milliseconds << 80 | (rest * 4096 // 1_000_000) << 64 | _random(session, 62), 7)


# -- uuid --------------------------------------------------------------------------------------------------------------


def _wrap(module: ModuleType, name: str, inside: Callable[..., Any]) -> None:
    """``module.name`` is ``inside(session, *arguments)`` in a run."""
    real = getattr(module, name, None)
    if real is None:
        return
    as_function = isinstance(real, FunctionType)

    def function(*args: Any, **kwargs: Any) -> Any:
        session = acting() if COLLECTING or in_context() is not None else None
        if session is None:
            return real(*args, **kwargs)
        return inside(session, *args, **kwargs)

    def bound(_: object, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    if as_function:
        called_as(function, real)
        function.__module__ = real.__module__
        NAMES.put(module, name, function, real)
    else:
        NAMES.put(module, name, stand_in(module, real, bound), real)


def install() -> None:
    """Replace what ``uuid`` makes, and what packages like it make that are loaded."""
    _of_time(uuid, lambda number: uuid.UUID(int=number))
    _wrap(uuid, "getnode", _node)
    with contextlib.suppress(ImportError):  # this Python was built without it
        beneath = importlib.import_module("_uuid")
        _wrap(beneath, "generate_time_safe", _of_system)
    install_loaded()


def _of_system(session: Session) -> tuple[bytes, None]:
    """What the system makes of its clock and network card, and whether no other process made the same: not known."""
    return _v1(session, None, None).to_bytes(16, "big"), None


def _first(make: Callable[[int], Any]) -> Callable[..., Any]:
    def v1(session: Session, node: int | None = None, clock_seq: int | None = None) -> Any:
        return make(_v1(session, node, clock_seq))

    return v1


def _of_time(module: ModuleType, make: Callable[[int], Any]) -> None:
    def v4(session: Session) -> Any:
        return make(_v4(session))

    def v6(session: Session, node: int | None = None, clock_seq: int | None = None) -> Any:
        return make(_v6(session, node, clock_seq))

    def v7(session: Session) -> Any:
        return make(_v7(session))

    def v8(session: Session, a: int | None = None, b: int | None = None, c: int | None = None) -> Any:
        given = ((a, 48), (b, 12), (c, 62))
        first, second, third = (_random(session, bits) if part is None else part for part, bits in given)
        return make(_versioned(first << 80 | second << 64 | third, 8))

    for name, inside in (("uuid1", _first(make)), ("uuid4", v4), ("uuid6", v6), ("uuid7", v7), ("uuid8", v8)):
        _wrap(module, name, inside)


# -- packages ----------------------------------------------------------------------------------------------------------


def _uuid_utils(module: Any) -> None:
    """``uuid_utils``, and ``uuid_utils.compat``, which takes numbers from it."""

    def make(number: int) -> Any:
        return module.UUID(int=number)

    def v6(
        session: Session, node: int | None = None, timestamp: int | None = None, nanos: int | None = None
    ) -> Any:
        at = None if timestamp is None else timestamp * 10_000_000 + (nanos or 0) // 100 + _SINCE_1582
        return make(_v6(session, node, None, at))

    def v4(session: Session) -> Any:
        return make(_v4(session))

    def v7(session: Session, timestamp: int | None = None, nanos: int | None = None) -> Any:
        return make(_v7(session, timestamp, nanos))

    for name, inside in (("uuid1", _first(make)), ("uuid4", v4), ("uuid6", v6), ("uuid7", v7)):
        _wrap(module, name, inside)
    _wrap(module, "_uuid4_int", _v4)
    _wrap(module, "_uuid7_int", _v7)
    _wrap(module, "getnode", _node)


def _fastuuid(module: Any) -> None:
    def make(number: int) -> Any:
        return module.UUID(int=number)

    def wrap(name: str, one: Callable[[Session], int]) -> None:
        def single(session: Session) -> Any:
            return make(one(session))

        def several(session: Session, n: int) -> list[Any]:
            return [make(one(session)) for _ in range(n)]

        def texts(session: Session, n: int) -> list[str]:
            return [str(uuid.UUID(int=one(session))) for _ in range(n)]

        _wrap(module, name, single)
        _wrap(module, f"{name}_bulk", several)
        _wrap(module, f"{name}_as_strings_bulk", texts)

    wrap("uuid4", _v4)
    wrap("uuid7", _v7)
    _wrap(module, "uuid1", _first(make))
    _wrap(module, "uuid_v1mc", _first(make))


def _keeper(module: Any, attribute: str, functions: tuple[str, ...]) -> None:
    """Give each run its own of a value that a module keeps for the process. Within a call it stands in the module."""
    key = (module.__name__, attribute)

    def keeping(real: Callable[..., Any]) -> Callable[..., Any]:
        def inside(session: Session, *args: Any, **kwargs: Any) -> Any:
            states = session.guard.states
            with _lock:
                outer = getattr(module, attribute)
                setattr(module, attribute, states.get(key))
                try:
                    return real(*args, **kwargs)
                finally:
                    states[key] = getattr(module, attribute)
                    setattr(module, attribute, outer)

        return inside

    for name in functions:
        if hasattr(module, name):
            _wrap(module, name, keeping(getattr(module, name)))


def install_loaded() -> bool:
    """Replace what is loaded by now of packages that make identifiers themselves. True where there was something."""
    found = False
    for name, put in _PACKAGES.items():
        module = sys.modules.get(name)
        if (
            module is None
            or name in _LOADED
            or getattr(getattr(module, "__spec__", None), "_initializing", False)
        ):
            continue
        _LOADED.add(name)
        put(module)
        found = True
    return found


def _kept(name: str) -> Callable[[Any], None]:
    return lambda module: _keeper(module, *_KEEPERS[name])


_PACKAGES: dict[str, Callable[[Any], None]] = {
    "uuid_utils": _uuid_utils,
    "fastuuid": _fastuuid,
    **{name: _kept(name) for name in _KEEPERS},
}
