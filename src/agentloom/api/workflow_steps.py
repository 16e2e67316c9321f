"""``Step``: one step of a workflow as data, and ``goto``, its choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from agentloom.api.workflow_state import State

if TYPE_CHECKING:
    from agentloom.api.retries import Retry

__all__ = ["Goto", "Kind", "Prompt", "Step", "goto"]

Kind = Literal["model", "fn", "tool", "agent", "workflow"]
Prompt = str | Callable[[State], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``models`` are asked in turn (a ``model`` step; the first, then its fallbacks); ``target`` is the
    function, tool, agent or workflow of the other kinds. ``params`` go to the model as they are.

    ``after`` names the steps whose end it waits for; ``when`` says whether it runs; ``loop`` how often a run may go
    back from here to each of the named steps. ``each`` gives a list, of which at most ``limit`` items are worked on
    at a time. ``inputs`` are the only fields that it sees (None: all before it); ``verify`` makes it a child run that
    gets these fields and nothing else. ``timeout`` is in seconds.
    """

    name: str
    kind: Kind
    models: tuple[str, ...] = ()
    target: Any = None
    prompt: Prompt | None = None
    template: Any = None
    system: str | None = None
    output: Any = None
    repair: int = 1
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after: tuple[str, ...] = ()
    when: Callable[[State], object] | None = None
    retry: Retry | None = None
    timeout: float | None = None
    args: Mapping[str, Any] | Callable[[State], Any] | None = None
    each: str | Callable[[State], Any] | None = None
    limit: int = 8
    loop: Mapping[str, int] = field(default_factory=dict[str, int])
    inputs: tuple[str, ...] | None = None
    verify: bool = False

    @property
    def named(self) -> Mapping[str, Any] | None:
        """The arguments of ``args=`` where it is a mapping."""
        args: object = self.args
        return cast("Mapping[str, Any]", args) if isinstance(args, Mapping) else None


class _AsName:
    """Stands for a value that was not given: the result is the name that was chosen."""


@dataclass(frozen=True, slots=True)
class Goto:
    """A choice (see ``goto``)."""

    name: str
    given: object = _AsName

    @property
    def value(self) -> object:
        """The result of the step that made the choice."""
        return self.name if self.given is _AsName else self.given


def goto(name: str, value: object = _AsName) -> Goto:
    """What a deterministic step returns to choose the step that the workflow goes on with: a step after it, or one
    that its ``loop=`` names. ``value`` is its own result; without one, the name that it chose.

    The steps that were not chosen do not run, unless another step leads to them.
    """
    return Goto(name, value)
