"""The environment in a run: what it reads is recorded when it is first read, and served on replay by name.

A run reads a snapshot of its beginning, and writes to an overlay of its own. Variables whose names look like
credentials, and addresses with a password in them, are never written: the trace holds a placeholder, and so a replay
sees one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, ItemsView, Iterator, Mapping
from threading import get_ident  # before the guard watches who asks for it by its name
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from agentloom.format.placeholders import START
from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.finding import STANDS_IN
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_names import called_as
from agentloom.runtime.redaction_env import WATCH
from agentloom.runtime.scope import in_context, set_variables
from agentloom.runtime.work import under_way

if TYPE_CHECKING:
    from agentloom.runtime.places import Places
    from agentloom.runtime.session import Session

__all__ = ["LISTED", "Environment", "Recorded", "Snapshot", "change", "install"]

LISTED = "="
"""Under this name, which no variable can have, the trace keeps the names of all variables, where all were listed; and
under names that begin so what the run was told of the process and the machine (``guard_facts``)."""

_HOME = os.path.join(os.path.dirname(os.__file__), "")
_PASSED = (f"{_HOME}os.py", f"{_HOME}_collections_abc.py", "<frozen os>", "<frozen _collections_abc>")


class Snapshot:
    """The environment of a run that is being recorded. ``pending`` are reads that no entry holds yet: as they
    are, for what must not be written is put aside where entries are written (``TraceLedger``)."""

    def __init__(self) -> None:
        self._data: dict[Any, Any] = cast(Any, os.environ)._data.copy()
        self._read: dict[str, str | None] = {}
        self._names: list[str] | None = None
        self.facts: dict[str, tuple[int, Mapping[str, Any] | None]] = {}
        """Of each fact how often it was asked for, and what was given last."""
        self.pending: dict[str, Any] = {}

    def fact(self, key: str, perform: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What ``key`` (a call, as text) gives now. It is kept with its first reading, and with each that differs."""
        found = perform()
        count, before = self.facts.get(key, (0, None))
        if found != before:
            self.pending[_reading(key, count + 1)] = found
        self.facts[key] = count + 1, found
        return found

    def get(self, name: str, _: Callable[[], str | None]) -> str | None:
        """The value, or None where it is not set."""
        if name in self._read:  # libraries list all variables with each request
            return self._read[name]
        found = self._data.get(cast(Any, os.environ).encodekey(name))
        value = self._read[name] = self.pending[name] = None if found is None else os.fsdecode(found)
        return value

    def peek(self, name: str) -> str | None:
        """The value, without that being a reading of the run."""
        found = self._data.get(cast(Any, os.environ).encodekey(name))
        return None if found is None else os.fsdecode(found)

    def names(self, _: Callable[[], str | None]) -> list[str]:
        """The names of all variables that are set."""
        if self._names is None:
            self._names = [os.fsdecode(name) for name in self._data]
            self.pending[LISTED] = list(self._names)
        return list(self._names)


class Recorded:
    """The environment of a replay. ``unknown`` is told of a variable that the agent's own code reads and the
    recording did not, with its place; what it returns is raised."""

    def __init__(self, values: Mapping[str, Any], unknown: Callable[[str, str], BaseException]) -> None:
        self._values = values
        self._unknown = unknown
        self._facts: dict[str, tuple[int, Mapping[str, Any] | None]] = {}
        self.pending: dict[str, Any] | None = None
        self.moved: tuple[str, str] | None = None
        """The working folder of the recording and that of this process, where the run was told of one and it
        is another one here: paths that the run makes from the first are to be found in the second."""

    def told(self, key: str) -> Any:
        """What the recorded run was first told of the fact ``key``, None where it did not ask."""
        found = self._values.get(_reading(key, 1))
        return found.get("is") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

    def fact(self, key: str, perform: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What ``key`` gave at this reading when the run was recorded; what it gives here where nobody asked then."""
        count, found = self._facts.get(key, (0, None))
        found = self._values.get(_reading(key, count + 1), found)
        self._facts[key] = count + 1, found
        return perform() if found is None else found

    def get(self, name: str, place: Callable[[], str | None]) -> str | None:
        """The recorded value; None where it was not set, or where a library asks for what nobody asked for then."""
        if name in self._values:
            return cast("str | None", self._values[name])
        if LISTED not in self._values or name in self._values[LISTED]:
            self._refuse(f"the environment variable {name}", place)
        return None

    def names(self, place: Callable[[], str | None]) -> list[str]:
        """The names that were set; none where a library lists what nobody listed then."""
        if LISTED not in self._values:
            self._refuse("all environment variables", place)
        return list(self._values.get(LISTED, ()))

    def _refuse(self, what: str, place: Callable[[], str | None]) -> None:
        own = place()
        if own is not None:
            raise self._unknown(what, own)


class Resumed(Recorded):
    """The environment of a run that another process goes on with: what was read before stays as it was, everything else
    is of this process, and is recorded. A credential, which the trace does not hold, is this process's own."""

    def __init__(self, values: Mapping[str, Any], unknown: Callable[[str, str], BaseException]) -> None:
        super().__init__(values, unknown)
        self._here = Snapshot()
        self._facts = self._here.facts  # readings go on to be counted
        self.live = False
        self.pending = self._here.pending

    def fact(self, key: str, perform: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """As of the recorded run; from where that ends what it gives now."""
        return self._here.fact(key, perform) if self.live else super().fact(key, perform)

    def get(self, name: str, place: Callable[[], str | None]) -> str | None:
        """The recorded value, with the secret itself where this process has it; else that of this process."""
        if name in self._values:
            then = cast("str | None", self._values[name])
            if then is None or START not in then:
                return then
            return self._here.peek(name) or then
        return self._here.get(name, place) if self.live else super().get(name, place)

    def names(self, place: Callable[[], str | None]) -> list[str]:
        """The recorded names, where they were listed; else those of this process."""
        return self._here.names(place) if self.live and LISTED not in self._values else super().names(place)


Environment = Snapshot | Recorded


def _reading(key: str, count: int) -> str:
    """The name of the ``count``-th reading of a fact in the trace."""
    return f"{LISTED}{key}" if count == 1 else f"{LISTED}{key} {count}"


# -- os.environ -------------------------------------------------------------------------------------------------------

_Environ: Any = type(os.environ)
_real: dict[str, Any] = {
    name: getattr(_Environ, name)
    for name in ("__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "items")
}


def _of_process(mapping: object) -> bool:
    """Whether ``mapping`` is the environment of the process, and not one that somebody made of its kind."""
    return mapping is os.environ or mapping is getattr(os, "environb", None)


def _session(mapping: object) -> Session | None:
    """The run that ``mapping`` is read or written in, where it is the process's environment."""
    if (not COLLECTING and in_context() is None) or not _of_process(mapping):
        return None
    session = acting()
    return session if session is not None and session.guard.environment is not None else None


def _place(places: Places) -> Callable[[], str | None]:
    def find() -> str | None:
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and (
            frame.f_code.co_filename in STANDS_IN or frame.f_code.co_filename in _PASSED
        ):
            frame = frame.f_back
        name = places.name(frame.f_code) if frame is not None else None
        return None if frame is None or name is None else f"{name}:{frame.f_lineno} {frame.f_code.co_name}"

    return find


def _name(mapping: Any, key: Any) -> str:
    if type(key) is str and key.isascii() and mapping is os.environ:
        return key
    return os.fsdecode(mapping.encodekey(key))


def _value(mapping: Any, value: str) -> Any:
    """A value in the form that this mapping gives: ``environb`` gives bytes."""
    return value if mapping is os.environ else os.fsencode(value)


def _changed() -> dict[str, str | None] | None:
    """What the run has set or deleted, for code that is part of it and yet sees the process's environment: host work,
    and modules while they are loaded (their libraries read their settings then)."""
    if COLLECTING and get_ident() in COLLECTING:
        return None  # no context is asked
    scope = in_context()
    if scope is None:
        return set_variables()
    guard = scope.session.guard
    return guard.overlay if guard.suspended and not scope.session.over else None


def _getitem(self: Any, key: Any) -> Any:
    session = _session(self)
    if session is None:
        changed = _changed()
        if changed is None or (name := _name(self, key)) not in changed:
            return _real["__getitem__"](self, key)
        found = changed[name]
    else:
        guard, name = session.guard, _name(self, key)
        if guard.overlay is not None and name in guard.overlay:
            found = guard.overlay[name]
        else:
            found = cast(Environment, guard.environment).get(name, _place(session.engine.places))
    if found is None:
        raise KeyError(key) from None
    return _value(self, found)


def _all_names(session: Session) -> list[str]:
    guard = session.guard
    names = dict.fromkeys(cast(Environment, guard.environment).names(_place(session.engine.places)))
    for name, value in (guard.overlay or {}).items():
        if value is None:
            names.pop(name, None)
        else:
            names[name] = None
    return list(names)


def _iter(self: Any) -> Iterator[Any]:
    session = _session(self)
    if session is None:
        return cast("Iterator[Any]", _real["__iter__"](self))
    return iter([_value(self, name) for name in _all_names(session)])


class _Items(ItemsView[Any, Any]):
    """The items of the environment in a run. Libraries go through all of them with each request (``urllib`` looks for
    proxies there, in some releases twice), so whose they are is asked once, not for each."""

    _mapping: Any

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        mapping = self._mapping
        session = _session(mapping)
        if session is None:
            yield from super().__iter__()
            return
        guard, place = session.guard, _place(session.engine.places)
        read = cast(Environment, guard.environment).get
        for name in _all_names(session):
            overlay = guard.overlay
            found = overlay[name] if overlay is not None and name in overlay else read(name, place)
            if found is None:
                raise KeyError(_value(mapping, name))
            yield _value(mapping, name), _value(mapping, found)


_Items.__name__ = _Items.__qualname__ = ItemsView.__name__


def _items(self: Any) -> ItemsView[Any, Any]:
    return cast("ItemsView[Any, Any]", _real["items"](self)) if _session(self) is None else _Items(self)


def _len(self: Any) -> int:
    session = _session(self)
    return cast(int, _real["__len__"](self)) if session is None else len(_all_names(session))


def _setitem(self: Any, key: Any, value: Any) -> None:
    session = _session(self)
    if session is None:
        _tell(self, key, value)
    if session is None or _write(session, _name(self, key), os.fsdecode(self.encodevalue(value))):
        _real["__setitem__"](self, key, value)
        WATCH.writes += 1


def _delitem(self: Any, key: Any) -> None:
    session = _session(self)
    if session is None:
        changed = _changed() or {}
        if changed.get(_name(self, key)) is None or self.encodekey(key) in self._data:
            _real["__delitem__"](self, key)  # KeyError where it is not set
        _tell(self, key, None)
        WATCH.writes += 1
        return
    _getitem(self, key)  # KeyError where it is not set
    if _write(session, _name(self, key), None) and self.encodekey(key) in self._data:
        _real["__delitem__"](self, key)
        WATCH.writes += 1


def _tell(mapping: Any, key: Any, value: Any) -> None:
    """Tell the run of what work that shares its environment has set there, or deleted."""
    if COLLECTING or not _of_process(mapping):
        return
    work = under_way()
    if work is not None and work.shares is not None:
        text = None if value is None else os.fsdecode(mapping.encodevalue(value))
        work.shares.set_variable(_name(mapping, key), text)


def change(session: Session, name: str, value: str | None, *, real: bool = True) -> None:
    """Let the run find a variable set, or deleted (None), as if its own code had done it. ``real``: also in
    the process's own environment, where runs write to that."""
    passes = session.guard.environment is None or _write(session, name, value)
    if not (real and passes):
        return
    if value is not None:
        _real["__setitem__"](os.environ, name, value)
    elif cast(Any, os.environ).encodekey(name) in cast(Any, os.environ)._data:
        _real["__delitem__"](os.environ, name)
    WATCH.writes += 1


def _write(session: Session, name: str, value: str | None) -> bool:
    """Write to the overlay. True where the process's own environment is written too: while a run under ``virtual`` is
    recorded, so that the processes which its tools start find what the program has set."""
    guard = session.guard
    if guard.overlay is None:
        guard.overlay = {}
    guard.overlay[name] = value
    redactor = session.engine.redactor
    if redactor is not None and value is not None:
        redactor.set_variable(name, value)
    return guard.policy == "virtual" and isinstance(guard.environment, Snapshot)


def install() -> None:
    """Replace how ``os.environ`` and ``os.environb`` are read and written; ``os.getenv`` and ``get`` ask them."""
    STANDS_IN.add(_getitem.__code__.co_filename)
    made = {
        "__getitem__": _getitem, "__setitem__": _setitem, "__delitem__": _delitem, "__iter__": _iter, "__len__": _len,
        "items": _items,
    }  # fmt: skip
    for name, function in made.items():
        called_as(function, _real[name])
        setattr(_Environ, name, function)
    WATCH.told = True
