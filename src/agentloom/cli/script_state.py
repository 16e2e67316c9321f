"""What a tool of a script has in common with the rest of the process: variables of the environment, random numbers,
context variables, settings. The script sees while it is recorded what a tool changes there, as without
agentloom; what has an exact form comes back on replay, and all else is named."""

from __future__ import annotations

import contextvars
import os
import random
import sys
import threading
from typing import Any, cast

from agentloom.cli.script_kinds import is_own
from agentloom.cli.script_library import packed, unpacked
from agentloom.cli.script_names import Unkept
from agentloom.cli.script_probes import PROBES
from agentloom.errors import ValueRefused
from agentloom.format.values import encode
from agentloom.runtime.guard_env import change
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import Scope

__all__ = ["Shares", "State", "of_libraries", "put_state"]

_NONE: Any = object()


class Shares:
    """What one call of a tool shares with its run (``Sharing``)."""

    def __init__(self, scope: Scope) -> None:
        self._session = scope.session
        self._path = scope.path
        self.variables: dict[str, str | None] = {}
        self.drawn: str | None = None
        """``drawn`` or ``seeded``: what it did with the functions of ``random``."""
        self.threads: list[threading.Thread] = []

    def generator(self, name: str) -> random.Random | None:
        """See ``Sharing``."""
        seeds = name in ("seed", "setstate")
        self.drawn = "seeded" if seeds or self.drawn == "seeded" else "drawn"
        guard = self._session.guard
        return guard.generator(self._path, self._session.seed, name) if guard.virtual else None

    def set_variable(self, name: str, value: str | None) -> None:
        """See ``Sharing``."""
        self.variables[name] = value
        change(self._session, name, value, real=False)

    def started(self, thread: threading.Thread) -> None:
        """See ``Sharing``."""
        self.threads.append(thread)

    def drawn_state(self) -> list[Any] | None:
        """Where the functions of ``random`` are after it, if it has used them."""
        if self.drawn is None:
            return None
        guard = self._session.guard
        generator: Any = guard.generator(self._path, self._session.seed) if guard.virtual else random
        return [self.drawn, *packed(generator.getstate())]


class State:
    """What there is of all this before a tool is performed. ``alone``: nothing else of the program goes on
    meanwhile, so that what is another afterwards is the tool's doing."""

    def __init__(self, shares: Shares, *, alone: bool) -> None:
        self._shares = shares
        self._alone = alone
        self._seen = {name: probe.look() for name, probe in PROBES.items()}
        self._context = contextvars.copy_context()
        self._variables: dict[Any, Any] = dict(cast(Any, os.environ)._data) if alone else {}
        self._modules = len(sys.modules)

    def kept(self) -> tuple[dict[str, Any], list[str]]:
        """What is to be written of what is another now, and in words what cannot be."""
        kept: dict[str, Any] = {}
        told: list[str] = []
        self._look_at_variables()
        if self._shares.variables:
            kept["variables"] = dict(self._shares.variables)
        if (state := self._shares.drawn_state()) is not None:
            kept["random"] = state
        for name, probe in PROBES.items():
            now = probe.look()
            if now == self._seen[name]:
                continue
            try:
                found = probe.keep(self._seen[name], now)
                encode(found, TYPES)
            except Unkept as unkept:
                told.append(str(unkept))
            except ValueRefused as refused:
                told.append(f"changes {name} of the process: {refused.type_name}, {refused.reason}")
            else:
                kept[name] = found
                if probe.tell is not None and (words := probe.tell(found)) is not None:
                    told.append(words)
        told += self._left_going()
        return kept, told

    def _look_at_variables(self) -> None:
        """Variables that the tool has set where nobody was told: in threads of its own."""
        if not self._alone:
            return
        held: dict[Any, Any] = cast(Any, os.environ)._data
        if held == self._variables:
            return
        for raw in {*held, *self._variables}:
            value = held.get(raw)
            if value != self._variables.get(raw):
                name = os.fsdecode(raw)
                if name not in self._shares.variables:
                    self._shares.set_variable(name, None if value is None else os.fsdecode(value))

    def _left_going(self) -> list[str]:
        told = [
            f"starts a thread that goes on after it ({thread.name}): what that does is not recorded"
            for thread in self._shares.threads
            if thread.is_alive()
        ]
        if self._alone and len(sys.modules) != self._modules:
            told += [
                f"loads {name}: what is in it then, a replay has as it is when the script loads it"
                for name in list(sys.modules)[self._modules :]
                if is_own(sys.modules.get(name))
            ]
        return told

    def context(self) -> list[tuple[contextvars.ContextVar[Any], Any]]:
        """Context variables that hold something else now, with what they hold."""
        return [
            (variable, value)
            for variable, value in contextvars.copy_context().items()
            if self._context.get(variable, _NONE) is not value and not variable.name.startswith("agentloom.")
        ]


def of_libraries(
    changed: list[tuple[contextvars.ContextVar[Any], Any]], known: dict[int, Any]
) -> tuple[list[list[Any]], list[str]]:
    """Of context variables that the tool does not name itself (``known`` are those): module, name and value;
    and in words those that cannot be kept."""
    kept: list[list[Any]] = []
    told: list[str] = []
    for variable, value in changed:
        if id(variable) in known or variable.name == "decimal_context":
            continue
        place = _place_of(variable)
        if place is None:
            told.append(f"sets the context variable {variable.name}, which has no name in a module")
            continue
        try:
            encode(value, TYPES)
        except ValueRefused as refused:
            told.append(f"sets the context variable {variable.name} to {refused.type_name}, {refused.reason}")
        else:
            kept.append([*place, value])
    return kept, told


def _place_of(variable: contextvars.ContextVar[Any]) -> tuple[str, str] | None:
    for module, found in list(sys.modules.items()):
        names: Any = getattr(found, "__dict__", None)
        held = dict(cast("dict[str, Any]", names)) if type(names) is dict else {}
        for name, value in held.items():
            if value is variable:
                return module, name
    return None


def put_state(scope: Scope, kept: dict[str, Any]) -> list[str]:
    """Bring about in the script that is replayed what a tool has changed; in words what cannot be."""
    gone: list[str] = []
    for name, value in kept.items():
        if name == "variables":
            for variable, text in value.items():
                change(scope.session, variable, text)
        elif name == "random":
            _put_random(scope, *value)
        elif name == "context":
            gone += _put_context(value)
        else:
            try:
                PROBES[name].put(value)
            except Unkept as unkept:
                gone.append(str(unkept))
    return gone


def _put_random(scope: Scope, drawn: str, *state: Any) -> None:
    guard = scope.session.guard
    function = "setstate" if drawn == "seeded" else "getstate"
    generator: Any = guard.generator(scope.path, scope.session.seed, function) if guard.virtual else random
    generator.setstate(unpacked(list(state)))


def _put_context(kept: list[list[Any]]) -> list[str]:
    gone: list[str] = []
    for module, name, value in kept:
        variable = getattr(sys.modules.get(module), name, None)
        if isinstance(variable, contextvars.ContextVar):
            cast(Any, variable).set(value)
        else:
            gone.append(f"set the context variable {name} of {module}, which is not there now")
    return gone
