"""How deep workflows lie in workflows, looked at before anything walks down them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentloom.api.workflow_steps import Step
from agentloom.errors import WorkflowError
from agentloom.runtime.agents import CHILD_RUNS

__all__ = ["refuse_deep"]


def refuse_deep(workflow: str, steps: Mapping[str, Step]) -> None:
    """Raise ``WorkflowError`` where the workflows in ``steps``, and those in them, go down further than ``CHILD_RUNS``
    child runs. One that runs itself is left to the check that names it."""
    level: dict[int, tuple[Any, ...]] = {
        id(one.target): (one.target,) for one in steps.values() if one.kind == "workflow"
    }
    while level:
        if len(next(iter(level.values()))) > CHILD_RUNS:
            raise WorkflowError(
                f"workflow {workflow!r} has workflows {CHILD_RUNS + 1} deep inside one another;"
                f" at most {CHILD_RUNS} are supported",
                hint="make steps of one workflow of them",
                step=next(one.name for one in steps.values() if one.kind == "workflow"),
                depth=CHILD_RUNS + 1,
            )
        level = {
            id(one.target): (*way, one.target)
            for way in level.values()
            for one in way[-1]._steps.values()
            if one.kind == "workflow" and not any(one.target is above for above in way)
        }
