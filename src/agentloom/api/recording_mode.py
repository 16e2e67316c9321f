"""What the ways in do with the code that they are given: record it, replay it, or leave it alone.

One variable flips the same code path: ``AGENTLOOM=record`` (the default), ``replay`` or ``off``. A replay needs traces:
those named by ``AGENTLOOM_TRACE`` (ids, tags, files; several separated by commas), else the newest run of that name
with these tags. ``with replaying(trace):`` says both for a block.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Literal, cast, get_args

from agentloom.api.trace import Trace
from agentloom.errors import LoomError, NotSupported, TargetError
from agentloom.runtime.contexts import put
from agentloom.runtime.left_out import LeftOut, left_out_here
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.scope import current
from agentloom.runtime.seams import stand_by
from agentloom.store import Query, Store, open_store

__all__ = [
    "Mode",
    "StoreLike",
    "left_alone_here",
    "mode",
    "newest_run",
    "opened",
    "ready",
    "replaying",
    "stand_by_unless_off",
    "trace_to_replay",
]

Mode = Literal["record", "replay", "off"]
StoreLike = Store | str | os.PathLike[str] | None
"""A store, its folder, or None: the default one."""

_MODES: tuple[str, ...] = get_args(Mode)
_VARIABLE = "AGENTLOOM"
_TRACES = "AGENTLOOM_TRACE"


class _Given:
    """Traces to replay, handed out by the name of the run: each once, in their order; a single one of a name as often
    as it is asked for."""

    def __init__(self, traces: list[Trace], where: str) -> None:
        self._where = where
        self._by_name: dict[str, list[Trace]] = {}
        self._asked: dict[str, int] = {}
        self._lock = free_in_children(threading.Lock())
        for trace in traces:
            self._by_name.setdefault(trace.name, []).append(trace)

    def next(self, name: str) -> Trace:
        """The trace for the next run called ``name``. ``TargetError`` where there is none (any more)."""
        with self._lock:
            found = self._by_name.get(name, [])
            at = self._asked[name] = self._asked.get(name, -1) + 1
        if not found:
            names = ", ".join(sorted(self._by_name)) or "none"
            raise TargetError(
                f"{self._where} holds no trace of {name}; it has traces of: {names}",
                hint=f"name a trace of {name}: agentloom ls",
            )
        if len(found) > 1 and at >= len(found):
            raise TargetError(
                f"{name} runs once more than {self._where} has traces of it ({len(found)})",
                hint="name as many traces as there are runs, or one for all of them",
            )
        return found[0 if len(found) == 1 else at]


_block: contextvars.ContextVar[_Given | None] = contextvars.ContextVar("agentloom.replaying", default=None)
_named: tuple[str, _Given] | None = None


def mode() -> Mode:
    """What to do with the run that begins here. ``TargetError`` for a word that is no mode."""
    if _block.get() is not None:
        return "replay"
    word = os.environ.get(_VARIABLE)
    if not word:
        return "record"
    if word not in _MODES:
        raise TargetError(
            f"{_VARIABLE}={word[:40]!r} is no mode", hint=f"one of {', '.join(_MODES)}; unset, it is record"
        )
    return cast(Mode, word)


def ready(store: Store | None = None) -> Mode:
    """As ``mode``, at the start of a program: under a replay the traces that are named are read too, so that one that
    is not there is an error before anything runs. ``TargetError``."""
    chosen = mode()
    if chosen == "replay" and _block.get() is None and (named := os.environ.get(_TRACES)):
        _from_variable(named, store)
    return chosen


def stand_by_unless_off() -> None:
    """Calls of SDKs are seen from now on, unless everything is left alone (or a wrong word is told later)."""
    if os.environ.get(_VARIABLE) != "off":
        stand_by()


def left_alone_here() -> LeftOut | None:
    """What was left out, if the run that would begin here belongs to such; None where a block of ``replaying`` that
    stands in it says otherwise: a replay never becomes a live run."""
    return left_out_here() if _block.get() is None else None


def opened(store: StoreLike) -> Store | None:
    """The store that is meant; None: the default one, asked for when a run begins."""
    return store if store is None else open_store(store)


@contextmanager
def replaying(*traces: Trace | str | os.PathLike[str]) -> Generator[None]:
    """For the block, what would be recorded is replayed: ``record``, ``wrap``, ``instrument`` and ``run`` of agents.

    ``traces``: traces, files or runs of the default store. Each run takes the next one of its name; with one trace of a
    name every run of that name takes it. Raises what reading them raises, ``NotSupported`` inside a run; a run that
    differs raises ``DivergenceError``.
    """
    if current() is not None:
        raise NotSupported(
            "replaying(...) was entered inside a run: what would be replayed is a part of that run, and performed",
            hint="replay outside of runs, or in a task of its own that no run has started",
        )
    token = put(_block, _Given([_read(trace, None) for trace in traces], "replaying(...)"))
    try:
        yield
    finally:
        _block.reset(token)


def trace_to_replay(name: str, tags: Mapping[str, str], store: Store | None) -> Trace:
    """The trace for the run ``name`` that begins here. ``TargetError`` where there is none: nothing runs then."""
    given = _block.get()
    if given is None and (named := os.environ.get(_TRACES)):
        given = _from_variable(named, store)
    if given is not None:
        return given.next(name)
    chosen = store if store is not None else open_store()
    return Trace.of_run(newest_run(name, tags, chosen), chosen, None)


def newest_run(name: str, tags: Mapping[str, str], store: Store) -> str:
    """The id of the newest run of that name with these tags. ``TargetError`` where there is none."""
    wanted = tuple(f"{key}={value}" for key, value in tags.items())
    rows = store.runs(Query(agent=name, tag=wanted or None, limit=1))
    if not rows:
        of = f" with {', '.join(wanted)}" if wanted else ""
        raise TargetError(
            f"{_VARIABLE}=replay, and there is no run of {name}{of} in {store!r}",
            hint=f"record one first, or name a trace: {_TRACES}=run.loom",
        )
    return rows[0].run


def _from_variable(named: str, store: Store | None) -> _Given:
    global _named
    if _named is None or _named[0] != named:
        traces = [_read(part.strip(), store) for part in named.split(",") if part.strip()]
        _named = named, _Given(traces, f"{_TRACES}={named[:80]}")
    return _named[1]


def _read(trace: Trace | str | os.PathLike[str], store: Store | None) -> Trace:
    if isinstance(trace, Trace):
        return trace
    named = os.fspath(trace)
    if os.path.isfile(trace):
        try:
            found = Trace.load(trace)
            _ = found.journal
        except (LoomError, OSError) as error:
            why = error.message if isinstance(error, LoomError) else error.strerror or str(error)
            raise TargetError(
                f"{named} is no trace that can be read: {why}", hint="name the file of a trace"
            ) from error
        return found
    try:
        return Trace.open(named, store)
    except LoomError as error:
        raise TargetError(
            f"there is no trace {named}: {error.message}", hint="give a file, the id of a run, or a tag"
        ) from error
