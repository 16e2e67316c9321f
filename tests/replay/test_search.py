"""Where a value comes from: placeholders of redaction, and earlier outcomes that hold it."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.search import holds_placeholder
from tests.replay.sources import SYNC, check


@pytest.mark.parametrize(
    ("tree", "holds"),
    [
        ("key __redacted_3__", True),
        ({"a": ["__redacted_1__"]}, True),
        ("__redacted__", False),
        (5, False),
        (None, False),
    ],
)
def test_placeholders_are_found_anywhere(tree: Any, holds: bool) -> None:
    assert holds_placeholder(tree) is holds


def test_a_value_that_an_earlier_call_returned_is_traced_to_it(program: Any) -> None:
    counted = "import itertools\nCOUNT = itertools.count()\n" + SYNC
    trace = program.record(counted.replace("refund(40)", "refund(found[next(COUNT)])"), "q")
    module = program.load()
    next(module.COUNT)
    report = trace.replay(check=False, agent=module.run)
    check(report, "diverged", "leak", "request")
    assert report.cause is not None
    assert report.cause.earlier == "2 (tool search)"


def test_code_that_works_on_a_redacted_value_is_classed_redacted(program: Any) -> None:
    source = SYNC.replace('return "found " + q', 'return "__redacted_1__ " + q')
    source = source.replace("refund(40)", "refund(found[0][:CUT])").replace("ORDER =", "CUT = 14\nORDER =")
    trace = program.record(source, "q")
    report = program.replay(trace, ("CUT = 14", "CUT = 5"))
    check(report, "diverged", "redacted", "request")
    assert "A value that was redacted when recorded" in str(report)
