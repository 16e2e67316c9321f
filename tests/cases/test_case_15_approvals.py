"""Case 15: approve a refund of 100; then with other arguments, a changed tool schema, a second click, after expiry, by
someone without the role: each is refused with its own reason; the exact call runs once."""

from __future__ import annotations

import time

import pytest

from agentloom import Trace, answer, inbox
from agentloom.errors import LateAnswer, ReusedAnswer, UnauthorisedAnswer
from tests.cases.conftest import Scenario

AGENT = '''
from agentloom import agent, approve, tool

@tool
def refund(order: int, amount: int) -> str:
    """Give money back."""
    open("refunded.txt", "a").write(f"{order} {amount}\\n")
    return "ok"

@agent
async def main(order: int) -> str:
    grant = await approve(refund, order, 100, approver="finance", expires=3600)
    return grant(refund, order, 100)
'''
PEOPLE = '[roles]\nfinance = ["ann"]\nsales = ["eve"]\n'


@pytest.fixture
def asked(scenario: Scenario) -> Scenario:
    """A refund of 100 that waits for somebody of finance."""
    path = scenario.write(AGENT)
    done = scenario.call("run", f"{path}:main", "--", "812")
    assert done.code == 75, done.all
    (scenario.store / "people.toml").write_text(PEOPLE)
    return scenario


def refunds(scenario: Scenario) -> list[str]:
    path = scenario.folder / "refunded.txt"
    return path.read_text().splitlines() if path.exists() else []


def granted(scenario: Scenario) -> None:
    answer("last", "yes", by="ann", store=str(scenario.store))


def test_the_exact_call_runs_once(asked: Scenario) -> None:
    granted(asked)
    done = asked.call("resume", "last")
    assert done.code == 0, done.all
    again = asked.call("resume", "last")
    assert again.code == 1
    assert "nothing to resume" in again.err
    assert refunds(asked) == ["812 100"]
    asked.identical()
    assert refunds(asked) == ["812 100"]


def test_other_arguments_are_refused(asked: Scenario) -> None:
    granted(asked)
    asked.edit(("grant(refund, order, 100)", "grant(refund, order, 1000)"))
    done = asked.call("resume", "last")
    assert done.code == 1, done.all
    assert "is for other arguments: amount is not what was approved" in done.all
    assert refunds(asked) == []


def test_what_is_to_be_approved_cannot_change_behind_the_answer(asked: Scenario) -> None:
    granted(asked)
    head = Trace.open("last", str(asked.store)).head
    asked.edit(("approve(refund, order, 100", "approve(refund, order, 1000"), ("order, 100)", "order, 1000)"))
    done = asked.call("resume", "last")
    assert done.code == 3, done.all
    assert "approval.args.amount" in done.all
    assert Trace.open("last", str(asked.store)).head == head
    assert refunds(asked) == []


def test_a_tool_that_takes_other_types_is_refused(asked: Scenario) -> None:
    granted(asked)
    head = Trace.open("last", str(asked.store)).head
    asked.edit(("amount: int) -> str", "amount: float) -> str"))
    done = asked.call("resume", "last")
    assert done.code == 3, done.all
    assert "approval.schema.amount.type" in done.all
    assert Trace.open("last", str(asked.store)).head == head
    assert refunds(asked) == []


def test_a_tool_that_is_described_otherwise_is_the_same(asked: Scenario) -> None:
    granted(asked)
    asked.edit(('"""Give money back."""', '"""Pay something back, in dollars."""  # better'))
    done = asked.call("resume", "last")
    assert done.code == 0, done.all
    assert refunds(asked) == ["812 100"]


def test_a_second_click_is_told_of_the_first(asked: Scenario) -> None:
    granted(asked)
    with pytest.raises(ReusedAnswer, match="answered before by ann"):
        granted(asked)
    assert asked.call("resume", "last").code == 0
    with pytest.raises(ReusedAnswer, match="answered by ann .*, and the run went on"):
        answer("last", "yes", ask=1, by="ann", store=str(asked.store))
    assert refunds(asked) == ["812 100"]


def test_somebody_without_the_role_is_refused(asked: Scenario) -> None:
    for by in ("eve", None):
        with pytest.raises(UnauthorisedAnswer, match="is for finance"):
            answer("last", "yes", by=by, store=str(asked.store))
    assert asked.call("answer", "last", "yes", "--by", "eve").code != 0
    assert asked.call("resume", "last").code == 75
    assert refunds(asked) == []
    granted(asked)


def test_a_yes_after_its_time_is_refused(asked: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time_ns() + 3601 * 10**9
    monkeypatch.setattr("agentloom.api.answering.time.time_ns", lambda: later)
    with pytest.raises(LateAnswer, match="was open until"):
        granted(asked)
    monkeypatch.undo()
    assert [ask.answered for ask in inbox(str(asked.store))] == [None]


def test_a_yes_that_is_used_after_its_time_is_refused(scenario: Scenario) -> None:
    slow = "from agentloom import sleep\n    await sleep(0.5)\n    return grant("
    scenario.write(AGENT.replace("expires=3600", "expires=0.2").replace("return grant(", slow))
    scenario.store.mkdir()
    (scenario.store / "people.toml").write_text(PEOPLE)
    # Nobody could be quicker than a fifth of a second but a program: it answers as soon as it is asked.
    (scenario.folder / "at_once.py").write_text(
        "import sys\n"
        "from agentloom import answer, inbox\n"
        "from agentloom.runtime.live_waits import ask_here\n"
        "from agentloom.errors import GrantRefused\n"
        f"store = {str(scenario.store)!r}\n"
        "ask_here(lambda call: answer('last', 'yes', by='ann', store=store, ask=call.ask))\n"
        "from agent import main\n"
        "try:\n"
        "    main.run(812, store=store)\n"
        "except GrantRefused as error:\n"
        "    print(error.why, error)\n"
    )
    done = scenario.bare("at_once.py")
    assert done.out.startswith("expired refund was not called: its approval held until"), done.all
    assert refunds(scenario) == []
