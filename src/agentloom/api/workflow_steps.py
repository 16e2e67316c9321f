"""``Step``: one step of a workflow as data. What runs it: ``workflow_run`` (the graph), ``step_model``, ``retries``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentloom.api.workflow_state import State

if TYPE_CHECKING:
    from agentloom.api.retries import Retry

__all__ = ["Kind", "Prompt", "Step"]

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
