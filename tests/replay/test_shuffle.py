"""Calls one after the other in another order: one finding, and what was found first where it is not only that."""

from __future__ import annotations

from typing import Any

import pytest

SOURCE = """
from agentloom import agent, tool
@tool(effect="read")
def find(q): return "found " + q
@agent
def run():
    out = [find("first")]
    for q in ("a", "b", "c", "d"):
        out.append(find(q))
    return out
"""
NOW = '("a", "b", "c", "d")'


@pytest.mark.parametrize(
    ("now", "cls", "index", "last"),
    [
        ('("b", "a", "c", "d")', "reordered", 2, 3),
        ('("d", "c", "b", "a")', "reordered", 2, 5),
        ('("a", "d", "c", "b")', "reordered", 3, 5),
        ('("b", "a")', "reordered", 2, 3),
        ('("b", "c", "d")', "missing", 2, None),
        ('("c", "a", "d", "e")', "missing", 3, None),
        ('("c", "e", "a", "b", "d")', "missing", 2, None),
        ('("e", "a", "b", "c", "d")', "changed", 2, None),
        ('("b", "b", "c", "d")', "missing", 2, None),
    ],
)
def test_one_finding(program: Any, now: str, cls: str, index: int, last: int | None) -> None:
    trace = program.record(SOURCE)
    report = program.replay(trace, (NOW, now))
    assert report.finding.cls == cls
    assert report.finding.call.index == index
    assert report.finding.last == last
    assert report.counts.exact == index - 1 if cls != "missing" else report.counts.exact == 1


def test_calls_that_come_out_of_order_get_their_own_answers_meanwhile(program: Any) -> None:
    """What the agent does between is not the verdict, and no effect of it is either."""
    source = SOURCE.replace(
        "    return out", "    if out[1] == 'found d': open('never-written.txt', 'w')\n    return out"
    )
    trace = program.record(source)
    report = program.replay(trace, (NOW, '("d", "a", "b")'))
    assert report.finding.cls == "missing"
    assert report.finding.call.index == 4
