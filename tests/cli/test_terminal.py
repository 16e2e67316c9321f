"""At a terminal a run asks at once, and goes on; Ctrl-C and the end of input lose nothing."""

from __future__ import annotations

import os

import pytest

from agentloom.cli.terminal import Terminal
from agentloom.store import LocalStore, MemoryStore
from tests.cli.scripts import Scripts
from tests.cli.suspending import REFUND, SEVERAL, WRITES, on_terminal, refunds, runs, suspended

DIES = """
import os
from agentloom import agent, tool

@tool
async def charge(order: int) -> str:
    os.kill(os.getpid(), 9)

@agent
async def shop(order: int) -> str:
    return await charge(order)
"""
"""Its process dies in a write, so that the call is in doubt."""


def test_it_is_asked_at_once_and_the_run_goes_on(scripts: Scripts) -> None:
    scripts.write(REFUND)
    seat = on_terminal(scripts, "run", "agent.py:support", "--", "812")
    seat.sees("Refund order 812 for $400?")
    seat.sees("yes, no")
    seat.sees("answer")
    seat.types("maybe\n")
    seat.sees("none of the choices")
    seat.types("\n")
    seat.types("yes\n")
    seat.sees("Refunded order 812.")
    seat.sees("-- recorded")
    assert seat.ends() == 0, seat.shown
    assert refunds(scripts) == ["812 400"]
    assert "not recorded:" not in seat.shown, seat.shown
    assert scripts.replay().code == 0


@pytest.mark.parametrize("keys", ["\x03", "\x04"])
@pytest.mark.parametrize("program", [REFUND, WRITES.replace("def shop", "def support")])
def test_ctrl_c_and_the_end_of_input_leave_the_question_open(
    scripts: Scripts, keys: str, program: str
) -> None:
    scripts.write(program)
    seat = on_terminal(scripts, "run", "agent.py:support", "--", "812")
    seat.sees("yes, no")
    seat.sees("answer")
    seat.types(keys)
    seat.sees("suspended")
    seat.sees("agentloom answer")
    assert seat.ends() == 75, seat.shown
    assert scripts.call("answer", "last", "no").code == 0
    done = scripts.call("resume", "last")
    assert done.code == 0, done.all
    assert refunds(scripts) == []


def test_resume_asks_too(scripts: Scripts) -> None:
    suspended(scripts, REFUND, "support", "7")
    seat = on_terminal(scripts, "resume", "last")
    seat.sees("answer")
    seat.types("yes\n")
    assert seat.ends() == 0, seat.shown
    assert refunds(scripts) == ["7 400"]


def test_a_call_in_doubt_is_asked_with_what_it_gave(scripts: Scripts) -> None:
    scripts.write(DIES)
    scripts.call("run", "agent.py:shop", "--", "7")
    seat = on_terminal(scripts, "resume", "last")
    seat.sees("Did this happen?")
    seat.sees("answer")
    seat.types("Y\n")
    seat.sees("and gave")
    seat.types("{oops\n")
    seat.sees("no JSON")
    seat.types('"receipt 1"\n')
    seat.sees("receipt 1")
    assert seat.ends() == 0, seat.shown


@pytest.mark.parametrize("keys", ["\x03", "\x04"])
def test_what_a_call_in_doubt_gave_is_not_made_up_when_nobody_says_it(scripts: Scripts, keys: str) -> None:
    scripts.write(DIES)
    scripts.call("run", "agent.py:shop", "--", "7")
    seat = on_terminal(scripts, "resume", "last")
    seat.sees("answer")
    seat.types("yes\n")
    seat.sees("and gave")
    seat.types(keys)
    seat.sees("suspended")
    assert seat.ends() == 75, seat.shown
    store = LocalStore(scripts.store)
    (run,) = runs(scripts)
    assert (store.mail(run), store.runs()[0].status) == ([], "suspended")


def test_several_questions_one_after_the_other(scripts: Scripts) -> None:
    scripts.write(SEVERAL)
    seat = on_terminal(scripts, "run", "agent.py:several")
    for _ in range(2):
        seat.sees("question")
        first = "The first?" in seat.shown.rpartition("question")[2]
        seat.sees("answer")
        seat.types("one\n" if first else "2\n")
        seat.sees("\n")
    seat.sees("one 2")
    assert seat.ends() == 0, seat.shown


def test_an_answer_from_elsewhere_ends_the_question(scripts: Scripts) -> None:
    scripts.write(REFUND)
    seat = on_terminal(scripts, "run", "agent.py:support", "--", "9")
    seat.sees("answer")
    (run,) = runs(scripts)
    assert scripts.call("answer", run, "yes").code == 0
    seat.sees("Refunded order 9.")
    assert seat.ends() == 0, seat.shown
    assert refunds(scripts) == ["9 400"]


def test_who_may_not_answer_is_told_and_the_question_stays(scripts: Scripts) -> None:
    scripts.write(
        REFUND.replace('choices=["yes", "no"]', 'choices=["yes", "no"], approver="nobody in particular"')
    )
    seat = on_terminal(scripts, "run", "agent.py:support", "--", "9")
    seat.sees("only nobody in particular")
    seat.sees("answer")
    seat.types("yes\n")
    seat.sees("is none of them")
    assert seat.ends() == 75, seat.shown


def test_an_interrupt_without_a_question_is_the_run_s() -> None:
    terminal = Terminal(MemoryStore(), lambda: None, None)
    assert terminal.interrupted() is False
    for descriptor in (terminal._read, terminal._write):
        os.close(descriptor)
