"""What is said of a suspended run: the questions, and what would lose it."""

from __future__ import annotations

import io

import pytest

from agentloom import agent, ask
from agentloom.cli.options import Settings
from agentloom.cli.render import Screen
from agentloom.cli.suspended import facts_of, show_suspended
from agentloom.errors import Suspended
from agentloom.store import MemoryStore


@agent
async def asks() -> str:
    return str(await ask("Shall we?", deadline=3600.0, default="no"))


def test_the_question_its_time_and_a_warning() -> None:
    store = MemoryStore()
    with pytest.raises(Suspended) as caught:
        asks.run(store=store)
    run = str(caught.value.run)
    err = io.StringIO()
    show_suspended(Screen(Settings(), io.StringIO(), err), store, run)
    shown = err.getvalue()
    assert "question  1  Shall we?" in shown
    assert ', then "no"' in shown
    assert "beware    this store is in memory" in shown
    facts = facts_of(store, run)
    assert [one["question"] for one in facts["asks"]] == ["Shall we?"]
    assert "in memory" in facts["store_dies_with"]


def test_a_run_that_is_gone() -> None:
    err = io.StringIO()
    show_suspended(Screen(Settings(), io.StringIO(), err), MemoryStore(), "nosuchrun")
    assert "nobody can answer it" in err.getvalue()
    assert facts_of(MemoryStore(), "nosuchrun")["asks"] == []
