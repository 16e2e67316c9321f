"""Calls that do not fit: changed, extra, missing, exhausted and reordered are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.mismatch import _ordinal, goto_finding
from agentloom.replay.report import CallRef
from tests.replay.sources import ASYNC, SYNC, check


def test_a_changed_argument_names_the_field_and_the_constant(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("refund(40)", "refund(41)"))
    check(report, "diverged", "changed", "request")
    assert report.finding is not None
    assert report.finding.comparison is not None
    assert report.finding.comparison.items[0].path == "args.amount"
    assert report.cause is not None
    assert report.cause.kind == "code"
    assert report.cause.changes[0].title == "run()"
    assert report.counts.exact == 3


def test_exhausted_missing_and_changed_are_three_words(program: Any) -> None:
    trace = program.record(SYNC, "q")
    changed = program.replay(trace, ('["a", "b", "c"]', '["a", "x", "c"]'))
    check(changed, "diverged", "changed", "request")
    missing = program.replay(trace, ('["a", "x", "c"]', '["a", "c"]'))
    check(missing, "diverged", "missing", "skipped")
    assert 'search("b") was made here when recorded' in str(missing)
    exhausted = program.replay(trace, ('["a", "c"]', '["a", "b", "b", "c"]'))
    check(exhausted, "diverged", "extra", "exhausted")
    assert "exhausted: recorded once, asked a second time at call 3" in str(exhausted)


def test_a_call_that_was_never_recorded_is_extra(program: Any) -> None:
    trace = program.record(SYNC, "q")
    check(
        program.replay(trace, ("    refund(40)", "    uuid()\n    refund(40)")),
        "diverged",
        "extra",
        "unrecorded",
    )


def test_a_call_after_the_last_one_is_past_the_end(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("    refund(40)", "    refund(40)\n    search('z')"))
    check(report, "diverged", "extra", "past the end")
    assert "The recording has 4 calls; this is one more." in str(report)


def test_other_order_of_the_same_calls_is_one_finding(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace, ('NAMES = ["a", "bbb", "cc"]', 'NAMES = ["cc", "a", "bbb"]'))
    check(report, "diverged", "reordered", "order")
    assert report.finding is not None
    assert report.finding.sequences == (
        ('search("a")', 'search("bbb")', 'search("cc")'),
        ('search("cc")', 'search("a")', 'search("bbb")'),
    )
    assert "calls 2-4 of" in str(report)


def test_one_more_and_one_less_in_a_gather(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    more = program.replay(trace, ('"bbb", "cc"]', '"bbb", "dd", "cc"]'))
    check(more, "diverged", "extra", "unrecorded")
    less = program.replay(trace, ('"bbb", "dd", "cc"]', '"cc"]'))
    check(less, "diverged", "missing", "skipped")
    other = program.replay(trace, ('["a", "cc"]', '["a", "dddd", "cc"]'))
    check(other, "diverged", "changed", "request")
    assert other.finding is not None
    assert other.finding.call is not None
    assert other.finding.call.index == 3


def test_an_awaited_call_that_is_not_made(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace, ("await search(question)", "await asyncio.sleep(0.1)"))
    check(report, "diverged", "missing", "skipped")


TWO = """
import asyncio
from agentloom import agent, tool


@tool(effect="read")
async def search(q):
    return q


async def second(gate):
    await gate.wait()
    return await search("b")


@agent
async def run(question):
    gate = asyncio.Event()
    task = asyncio.create_task(second(gate))
    # here
    one = await search("a")
    gate.set()
    return [one, await task]
"""


def test_a_call_that_no_longer_waits_for_another_is_made_earlier(program: Any) -> None:
    trace = program.record(TWO, "q")
    report = program.replay(trace, ("# here", "gate.set()"))
    check(report, "diverged", "reordered", "earlier")
    finding = report.finding
    assert finding is not None
    assert finding.message == "Call 2 is made earlier: when recorded, something had to arrive first."
    assert finding.last == 2
    assert finding.call is not None
    assert (finding.call.index, finding.call.name) == (2, "search")
    assert finding.call.src is not None  # where it is made now


def test_another_call_that_no_longer_waits_has_changed(program: Any) -> None:
    trace = program.record(TWO, "q")
    report = program.replay(trace, ("# here", "gate.set()"), ('"b"', '"x"'))
    check(report, "diverged", "changed", "request")
    assert report.finding is not None
    assert report.finding.call is not None
    assert report.finding.call.index == 2


@pytest.mark.parametrize(
    ("then", "now", "message"),
    [
        ("pay", "refuse", "Step 'route' goes to 'refuse' now; when recorded it went to 'pay'."),
        (None, "pay", "Step 'route' goes to 'pay' now; when recorded it went on without a choice."),
        ("pay", None, "Step 'route' goes on without a choice now; when recorded it went to 'pay'."),
    ],
)
def test_a_step_that_goes_elsewhere(then: str | None, now: str | None, message: str) -> None:
    ref = CallRef("root#0", "step", "route", 1)
    finding = goto_finding(ref, then, now)
    assert (finding.cls, finding.call, finding.reason, finding.message) == ("changed", ref, "goto", message)
    assert finding.comparison is not None
    (item,) = finding.comparison.items
    assert item.path == "route.goto"


def test_counts_in_words() -> None:
    numbers = (2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 20, 21, 22, 23, 24, 101, 111, 112, 113, 121, 1002)
    words = "second third fourth fifth 6th 9th 10th 11th 12th 13th 20th 21st 22nd 23rd 24th 101st 111th 112th 113th"
    assert [_ordinal(number) for number in numbers] == [*words.split(), "121st", "1,002nd"]
