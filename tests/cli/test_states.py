"""``show`` and ``diff`` of workflows: deterministic results, choices and what was not chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import State, Workflow, goto
from agentloom.cli.show import LIMIT
from agentloom.store import MemoryStore

Call = Callable[..., Any]


@agentloom.tool(effect="write")
def pay(order: str) -> str:
    """A tool."""
    return f"paid {order}"


def route(state: State) -> Any:
    return goto("refund" if "charged" in state.input else "bot")


def check(state: State) -> Any:
    return goto("refund", "again") if state.visit < 2 else "fine"


def triage() -> Workflow:
    graph = Workflow("triage").step("route", fn=route).step("bot", fn=lambda state: "hello", after="route")
    graph.step("refund", tool=pay, args={"order": "{input}"}, after="route")
    graph.step("check", fn=check, loop={"refund": 2}).step("fix", fn=check, when=lambda state: False)
    return graph.step("many", fn=lambda state: state.item, each=lambda state: [1, 2])


@pytest.fixture
def traces(tmp_path: Path) -> tuple[str, str]:
    """A refund, and a question."""
    for name, given in (("refund", "I was charged"), ("bot", "hi")):
        triage().run(given, store=MemoryStore()).save(tmp_path / f"{name}.loom")
    return str(tmp_path / "refund.loom"), str(tmp_path / "bot.loom")


def test_show_lists_results_and_choices_between_the_calls(cli: Call, traces: tuple[str, str]) -> None:
    lines = [line.rpartition("  ")[0].rstrip() for line in cli("show", traces[0]).out.splitlines()[1:-1]]
    assert [line.replace("WRITE ", "").rpartition("    ")[2] for line in lines if " - " not in line]
    assert [line for line in lines if " - " in line] == [
        "  - step  route  -> goes to refund, not to bot",
        '  - step  check  -> "again", goes to refund, not to fix',
        '  - step  check  -> "fine", not to refund',
        "  - when  fix    -> skipped",
        "  - each  many   -> 2 items",
        "  - step  many   -> 1",
        "  - step  many   -> 2",
    ]
    assert [line[:9] for line in lines] == [
        "  - step ", " 1 tool  ", "  - step ", " 2 tool  ", *["  - step ", "  - when ", "  - each "], *["  - step "] * 2
    ]  # fmt: skip


def test_show_as_json_has_the_states(cli: Call, traces: tuple[str, str]) -> None:
    states = json.loads(cli("show", traces[0], "--json").out)["states"]
    assert states[0] == {
        "id": "root/triage/route[0]#1",
        "name": "route",
        "value": "refund",
        "goto": "refund",
        "others": ["bot"],
        "reads": ["input"],
        "src": states[0]["src"],
    }
    assert states[2]["goto"] is None


def test_a_long_list_of_results_is_left_out_of_the_short_form_which_says_so(
    cli: Call, tmp_path: Path
) -> None:
    graph = Workflow("long")
    for number in range(60):
        graph.step(f"step{number}", fn=lambda state: "x" * 30)
    graph.run("in", store=MemoryStore()).save(tmp_path / "long.loom")
    short = cli("show", str(tmp_path / "long.loom")).out
    shown = short.count(" - step")
    assert 4 <= shown < 60
    assert f"... {60 - shown} deterministic results more: --all" in short
    assert " - step  step0 " in short
    assert " - step  step59 " in short
    assert len(short) < LIMIT
    assert cli("show", str(tmp_path / "long.loom"), "--all").out.count(" - step") == 60


def test_a_long_workflow_shows_its_first_and_last_steps_between_its_calls(cli: Call, tmp_path: Path) -> None:
    graph = Workflow("long")
    for number in range(40):
        graph.step(f"pay{number}", tool=pay, args={"order": "{input}"})
        graph.step(f"weigh{number}", fn=lambda state: 1)
    graph.run("in", store=MemoryStore()).save(tmp_path / "long.loom")
    short = cli("show", str(tmp_path / "long.loom")).out
    calls, results = short.count(" tool "), short.count(" - step")
    assert 0 < calls < 40
    assert 0 < results < 40
    assert f"... {40 - calls} calls more, and {40 - results} deterministic results: --all" in short
    assert short.index("weigh0") < short.index(" 2 tool")
    assert len(short) < LIMIT


def test_diff_says_which_step_went_another_way(cli: Call, traces: tuple[str, str]) -> None:
    out = cli("diff", *traces).out
    assert 'route.goto    "refund"  ->  "bot"' in out

    def other(given: str) -> Workflow:
        graph = Workflow("w").step("route", fn=lambda state: goto(given, 1)).step("a", fn=lambda state: 1)
        return graph.step("b", fn=lambda state: 1)

    found = other("a").run("in", store=MemoryStore()).diff(other("b").run("in", store=MemoryStore()))
    assert str(found).startswith("PART at state route: another step was chosen.")
    assert found.rows[0].outcome is not None
    assert [item.path for item in found.rows[0].outcome.items] == ["route.goto"]
