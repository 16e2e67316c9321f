"""What takes back the calls of tools, by the name of the tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentloom.errors import NotSupported
from agentloom.runtime.names import refuse_uncallable

__all__ = ["Undo", "undo_of", "undone_by"]


@dataclass(frozen=True, slots=True)
class Undo:
    """``function`` takes back a call of a tool; ``takes``: the names of what it is given of it."""

    function: Callable[..., object]
    takes: tuple[str, ...]
    tool: Callable[..., object]

    def given(self, args: Mapping[str, object], result: object) -> dict[str, object]:
        """What it is called with for a call that had ``args`` and returned ``result``."""
        facts = {**args, "result": result}
        return {name: facts[name] for name in self.takes if name in facts}


_undos: dict[str, list[Undo]] = {}


def undone_by(name: str, tool: Callable[..., object], undo: Callable[..., object]) -> None:
    """From now on ``undo`` takes back calls of the tool called ``name``. ``ValueError`` where it takes what the tool
    does not have."""
    refuse_uncallable("what takes back a tool", undo)
    has = inspect.signature(tool).parameters
    takes: list[str] = []
    for parameter in inspect.signature(undo).parameters.values():
        known = parameter.name in has or parameter.name == "result"
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if known and by_name:
            takes.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise ValueError(
                f"undo of tool {name} takes {parameter}: it is given the tool's arguments"
                f" ({', '.join(has) or 'none'}) and result, by their names"
            )
    others = [one for one in _undos.get(name, []) if _place(one.tool) != _place(tool)]
    _undos[name] = [*others, Undo(undo, tuple(takes), tool)]


def undo_of(name: str) -> Undo | None:
    """What takes back calls of the tool called ``name``; None: nothing does. ``NotSupported`` where several tools of
    that name say different things."""
    found = _undos.get(name, [])
    if len(found) > 1:
        raise NotSupported(
            f"several tools are called {name}, and each is taken back in its own way",
            hint="give them names of their own: @tool(name=...)",
        )
    return found[0] if found else None


def _place(tool: Callable[..., object]) -> tuple[object, object]:
    """Where a tool is defined: a module that is loaded again defines the same one again."""
    return getattr(getattr(tool, "__code__", None), "co_filename", None), getattr(tool, "__qualname__", None)
