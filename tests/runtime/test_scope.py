"""Where in a run code stands: ids by structure, one scope a task."""

from __future__ import annotations

import asyncio
import contextvars
from types import SimpleNamespace
from typing import Any

import pytest

from agentloom import agent, now
from agentloom.errors import NoActiveRun, NotSupported
from agentloom.runtime import scope
from agentloom.store import MemoryStore

RUN: Any = SimpleNamespace(
    over=False, baton=None, guard=SimpleNamespace(overlay=None), engine=SimpleNamespace(redactor=None)
)


def made() -> scope.Scope:
    return scope.Scope(RUN, "root/support")


def test_calls_are_counted_per_path_from_1() -> None:
    here = made()
    assert [here.next_call(), here.next_call()] == ["root/support#1", "root/support#2"]
    assert here.child("task").next_call() == "root/support/task[0]#1"


def test_children_are_numbered_per_name() -> None:
    here = made()
    assert [here.child(name).path for name in ("task", "task", "step")] == [
        "root/support/task[0]",
        "root/support/task[1]",
        "root/support/step[0]",
    ]


def test_a_child_keeps_its_parent_call_unless_given_another() -> None:
    here = scope.Scope(RUN, "root", parent="root#1")
    assert here.child("a").parent == "root#1"
    assert here.child("a", parent="root#2").parent == "root#2"


def test_the_scope_is_that_of_the_block() -> None:
    assert scope.current() is None
    here = made()
    with scope.entered(here):
        assert scope.current() is here
        assert scope.require("now") is here
        assert scope.outside().run(scope.current) is None
    assert scope.current() is None


def test_the_scope_of_a_run_that_is_over_is_none() -> None:
    here = scope.Scope(SimpleNamespace(over=True), "root")  # type: ignore[arg-type]
    with scope.entered(here):
        assert scope.current() is None
        with pytest.raises(NoActiveRun):
            scope.require("now")


def test_outside_a_run_the_function_is_named() -> None:
    with pytest.raises(NoActiveRun, match=r"now\(\) was called outside a run"):
        scope.require("now")


def test_a_context_without_a_run_stays_so() -> None:
    context = contextvars.copy_context()
    scope.enter_task(context)
    assert context.run(scope.current) is None


@agent
async def racing() -> None:
    async def branch(wait: float) -> None:
        await asyncio.sleep(wait)
        await now()

    await asyncio.gather(branch(0.002), branch(0.001))


def test_ids_come_from_the_order_of_creation_not_of_time() -> None:
    trace = racing.run(store=MemoryStore())
    assert {call.id for call in trace.calls} == {"root/racing/task[0]#1", "root/racing/task[1]#1"}
    assert trace.calls[0].id == "root/racing/task[1]#1"


def test_a_path_that_the_trace_cannot_hold_is_refused() -> None:
    here = made()
    for _ in range(6):
        here = here.child("a" * 10_000)
    with pytest.raises(NotSupported, match="nest agents and tasks less deep"):
        here.child("a" * 10_000)
