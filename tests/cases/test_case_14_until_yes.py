"""Case 14: ``charge()``, then ask until the answer is yes (no, no, no, yes), a new process each time: one charge, four
questions, four answers."""

from __future__ import annotations

import pytest

from agentloom import Trace, answer, inbox
from agentloom.errors import ReusedAnswer
from tests.cases.conftest import Scenario

ASYNC = """
import os
from agentloom import agent, ask, tool

@tool
async def charge(amount):
    open("charged.txt", "a").write(f"{os.getpid()}\\n")
    return amount

@tool
async def ship(order):
    open("shipped.txt", "a").write(f"{os.getpid()}\\n")

@agent
async def main(order):
    charged = await charge(40)
    asked = 0
    while await ask("Ship it?", choices=["yes", "no"]) != "yes":
        asked += 1
    await ship(order)
    return [charged, asked]
"""
SYNC = (
    ASYNC.replace("async def", "def")
    .replace("await ", "")
    .replace("import agent, ask, tool", "import agent, tool")
    + "\nfrom agentloom.sync import ask\n"
)


@pytest.mark.parametrize("text", [ASYNC, SYNC], ids=["async", "sync"])
def test_one_charge_four_questions_four_answers(scenario: Scenario, text: str) -> None:
    path = scenario.write(text)
    store = str(scenario.store)
    done = scenario.call("run", f"{path}:main", "--", "812")
    assert done.code == 75, done.all
    for number, said in enumerate(("no", "no", "no", "yes"), start=2):
        (ask,) = inbox(store)
        assert (ask.ask, ask.question, ask.choices) == (str(number), "Ship it?", ("yes", "no"))
        answer("last", said, ask=number, by=f"p{number}", store=store)
        with pytest.raises(ReusedAnswer, match=f"by p{number}"):
            answer("last", said, ask=number, by="eve", store=store)
        assert inbox(store) == []
        done = scenario.call("resume", "last")
        assert done.code == (0 if said == "yes" else 75), done.all
    assert len((scenario.folder / "charged.txt").read_text().splitlines()) == 1
    assert len((scenario.folder / "shipped.txt").read_text().splitlines()) == 1
    trace = Trace.open("last", store)
    assert trace.output == [40, 3]
    kinds = [entry["kind"] for entry in trace.journal.entries]
    assert [kinds.count(kind) for kind in ("suspend", "answer", "resume")] == [4, 4, 4]
    who = [trace.journal.tree(entry["who"]) for entry in trace.journal.entries if entry["kind"] == "answer"]
    assert [one["name"] for one in who] == ["p2", "p3", "p4", "p5"]  # type: ignore[call-overload, index]
    assert trace.verify().complete
    scenario.identical()


def test_a_resume_without_an_answer_writes_nothing(scenario: Scenario) -> None:
    path = scenario.write(ASYNC)
    assert scenario.call("run", f"{path}:main", "--", "812").code == 75
    before = Trace.open("last", str(scenario.store)).head
    assert scenario.call("resume", "last").code == 75
    assert Trace.open("last", str(scenario.store)).head == before
    assert len((scenario.folder / "charged.txt").read_text().splitlines()) == 1
