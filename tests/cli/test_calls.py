"""A call in one line, and which call a word means."""

from __future__ import annotations

import pytest

from agentloom.cli import calls
from agentloom.errors import TargetError
from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording
from tests.cli import samples


def recording(run: samples.Maker) -> Recording:
    return Recording.from_journal(Journal.parse(run.data))


def test_calls_are_found_by_number_id_and_end_of_id() -> None:
    run = recording(samples.refund())
    assert calls.find_call(run, "2") is run.calls[1]
    assert calls.find_call(run, "root/support#1") is run.calls[1]
    assert calls.find_call(run, "support#1") is run.calls[1]


def test_an_end_that_fits_several_is_refused() -> None:
    made = samples.Maker()
    for path in ("root/a/x#0", "root/b/x#0"):
        made.entry(
            "request",
            call=path,
            type="tool",
            name="t",
            key="0" * 32,
            profile="tool/1",
            req=made.blobs.put({}),
            src="?",
        )
    with pytest.raises(TargetError, match="is the end of 2 call ids"):
        calls.find_call(recording(made), "x#0")


@pytest.mark.parametrize(
    ("address", "parts"),
    [("3", ("3", None)), ("3:a.b", ("3", "a.b")), ("root/x#1:a:b", ("root/x#1", "a:b")), (":x", ("", "x"))],
)
def test_addresses_split_at_the_first_colon(address: str, parts: tuple[str, str | None]) -> None:
    assert calls.split_address(address) == parts


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (None, ""),
        ({}, ""),
        ({"input": 612, "output": 18}, "612+18 tok"),
        ({"input": 5}, "5+? tok"),
        ({"reasoning": 3}, ""),
    ],
)
def test_unknown_usage_is_no_zero(usage: dict[str, int] | None, text: str) -> None:
    assert calls.tokens(usage) == text  # type: ignore[arg-type]


def test_places_name_the_file_where_there_are_several() -> None:
    made = samples.Maker()
    made.call(0, "tool", "a", {}, 1)
    made.entry(
        "request", call="root/support#9", type="tool", name="b", key="0" * 32, profile="tool/1",
        req=made.blobs.put({}), src="other.py:3 f",
    )  # fmt: skip
    run = recording(made)
    lines = [
        "".join(s if isinstance(s, str) else s[1] for s in spans)
        for spans in calls.call_lines(run, run.calls, 100)
    ]
    assert lines[0].endswith("agent.py:9")
    assert lines[1].endswith("other.py:3")


def test_a_long_result_keeps_the_line_within_the_width() -> None:
    made = samples.Maker()
    made.call(0, "tool", "read", {}, "x" * 500)
    run = recording(made)
    (spans,) = calls.call_lines(run, run.calls, 80)
    assert sum(len(s if isinstance(s, str) else s[1]) for s in spans) <= 80


def test_no_calls_are_no_lines() -> None:
    assert calls.call_lines(recording(samples.Maker()), [], 80) == []
