"""What a replay serves and compares beside requests: streams, cancellation, crashes, erased payloads, output."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom import Trace
from agentloom.errors import PayloadMissing
from agentloom.format.journal import Journal
from agentloom.replay.replayer import replay
from tests.replay.sources import ASYNC, CANCEL, CHILD, MODEL, STREAM, SYNC, SYNC_STREAM, WORKFLOW, check

LOOP = """
from agentloom import agent, tool


@tool(effect="read")
def search(q):
    return q


@agent
def run(question):
    for number in range(COUNT):
        search(number)
"""


WAITS = """
import asyncio
from agentloom import agent


@agent
async def run(question):
    await asyncio.sleep(0.01)
    return 1
"""


def _cut(trace: Trace, kind: str, number: int) -> Journal:
    """The trace as a crash would leave it: everything up to and with the n-th entry of a kind."""
    lines = trace._data.splitlines(keepends=True)
    seen = 0
    for index, line in enumerate(lines):
        seen += f'"kind":"{kind}"'.encode() in line
        if seen == number:
            return Journal.parse(b"".join(lines[: index + 1]))
    raise AssertionError(kind)


def test_an_agent_that_ends_early(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("    refund(40)\n", ""))
    check(report, "diverged", "ended early", "agent ends")
    assert "it went on with call 4 tool refund" in str(report)


@pytest.mark.parametrize(
    ("line", "word"), [("return None", "returned"), ('raise ValueError("no")', "raised ValueError: no")]
)
def test_how_an_agent_ends_early_and_what_it_leaves_out(program: Any, line: str, word: str) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("    refund(40)\n", f"    {line}\n    refund(40)\n"))
    check(report, "diverged", "ended early", "agent ends")
    finding = report.finding
    assert finding is not None
    assert finding.message == f"The agent {word} here; when recorded it went on with call 4 tool refund."
    assert finding.call is not None
    assert (finding.call.index, finding.call.name, finding.call.src) == (4, "refund", None)


@pytest.mark.parametrize(
    ("count", "rest"),
    [
        (2, "call 1 tool search, 2 tool search."),
        (3, "call 1 tool search, 2 tool search, 3 tool search."),
        (4, "call 1 tool search, 2 tool search, 3 tool search and 1 more."),
        (6, "call 1 tool search, 2 tool search, 3 tool search and 3 more."),
    ],
)
def test_calls_that_an_early_end_leaves_out_are_named_up_to_three(
    program: Any, count: int, rest: str
) -> None:
    trace = program.record(LOOP.replace("COUNT", str(count)), "q")
    report = program.replay(trace, (f"range({count})", "range(0)"))
    check(report, "diverged", "ended early", "agent ends")
    assert report.finding is not None
    assert report.finding.message == f"The agent returned here; when recorded it went on with {rest}"


def test_an_agent_that_does_not_wait_ends_before_what_came(program: Any) -> None:
    trace = program.record(WAITS, "q")
    report = program.replay(trace, ("    await asyncio.sleep(0.01)\n", ""))
    check(report, "diverged", "ended early", "agent ends")
    assert report.finding is not None
    assert report.finding.message == "The agent returned here; when recorded a timer came first."


def test_another_output(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ('"found": found', '"found": found[:2]'))
    check(report, "diverged", "output", "value")
    assert "output.found[2]" in str(report)
    ordered = program.replay(
        trace, ('{"question": question, "found": found[:2]}', '{"found": found, "question": question}')
    )
    check(ordered, "diverged", "output", "value")


def test_a_timer_that_is_longer_now(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace, ("timeout(0.002)", "timeout(0.4)"))
    check(report, "diverged", "changed", "timer")


def test_noted_fields_are_counted_and_listed(program: Any, backend: Any) -> None:
    trace = program.record(MODEL, "q")
    report = program.replay(trace, ('user="ann"', 'user="bob"'))
    check(report, "identical except noted")
    assert (report.counts.exact, report.counts.noted) == (0, 3)
    assert report.exit_code(strict_noted=True) == 3
    assert str(report).startswith("IDENTICAL EXCEPT NOTED (3)  3/3 calls, output")
    assert 'user "ann" -> "bob"' in str(report)
    gone = program.replay(trace, (', user="bob"', ""))
    check(gone, "identical except noted")
    assert 'user "ann" -> (absent)' in str(gone)


@pytest.mark.parametrize("source", [STREAM, SYNC_STREAM], ids=["async", "sync"])
def test_a_stream_left_early_breaks_at_the_same_chunk(program: Any, backend: Any, source: str) -> None:
    backend.answers = ["one two three four five"]
    trace = program.record(source, "q")
    assert trace.output == ["one ", "two ", "three "]
    check(program.replay(trace), "identical")
    further = program.replay(trace, ("LIMIT = 3", "LIMIT = 4"))
    check(further, "diverged", "extra", "reads further")
    assert "left it after 3" in str(further)
    earlier = program.replay(trace, ("LIMIT = 4", "LIMIT = 2"))
    check(earlier, "diverged", "changed", "ended by the agent")


def test_a_stream_that_is_closed_later_at_the_same_chunk_is_the_same(program: Any, backend: Any) -> None:
    backend.answers = ["one two three four five"]
    trace = program.record(STREAM.replace("    return words", "    await now()\n    return words"), "q")
    assert [call.status for call in trace.calls] == ["closed", "ok"]
    inside = (
        "            if len(words) >= LIMIT:\n",
        "            if len(words) >= LIMIT:\n                await now()\n",
    )
    report = program.replay(trace, ("    await now()\n", ""), inside)
    check(report, "identical")


@pytest.mark.parametrize("source", [STREAM, SYNC_STREAM], ids=["async", "sync"])
def test_a_stream_read_to_its_end(program: Any, backend: Any, source: str) -> None:
    backend.answers = ["one two three four five"]
    trace = program.record(source.replace("LIMIT = 3", "LIMIT = 9"), "q")
    assert len(trace.output) == 5
    check(program.replay(trace), "identical")


@pytest.mark.parametrize(("kind", "number", "matched"), [("request", 3, 3), ("outcome", 2, 2)])
@pytest.mark.parametrize("source", [SYNC, ASYNC], ids=["sync", "async"])
def test_a_recording_that_ends_in_a_crash(
    program: Any, source: str, kind: str, number: int, matched: int
) -> None:
    trace = program.record(source, "q")
    report = replay(_cut(trace, kind, number), program.load().run.function)
    check(report, "diverged", "ended early", "recording ends")
    assert "its process died" in str(report)
    assert report.counts.exact >= matched
    assert report.cause is None


def test_an_erased_outcome_names_call_and_payload(program: Any) -> None:
    trace = program.record(SYNC, "q")
    blob = trace.journal.entries[4]["val"]
    assert trace.journal.entries[4]["kind"] == "outcome"
    del trace.journal._blobs[blob]
    with pytest.raises(PayloadMissing) as caught:
        program.replay(trace)
    assert caught.value.fields["index"] == 2
    assert caught.value.fields["blob"] == blob
    assert "outcome of call 2" in str(caught.value)


@pytest.mark.parametrize("source", [SYNC, ASYNC], ids=["sync", "async"])
def test_without_the_nonce_requests_are_compared(program: Any, source: str) -> None:
    trace = program.record(source, "q")
    del trace.journal._blobs[trace.journal.entries[0]["nonce"]]
    check(program.replay(trace), "identical")
    report = program.replay(trace, ('"a",', '"z",'))
    check(report, "diverged", "changed", "request")


def test_child_agents_replay_and_their_results_are_compared(program: Any) -> None:
    trace = program.record(CHILD, ["a", "bb"])
    check(program.replay(trace), "identical")
    report = program.replay(trace, ("FACTOR = 2", "FACTOR = 3"))
    check(report, "diverged", "output", "child")
    assert "FACTOR" in str(report)


def test_cancelled_calls_are_cancelled_at_the_same_point(program: Any) -> None:
    trace = program.record(CANCEL)
    assert [call.status for call in trace.calls] == ["cancelled", "ok", "cancelled", "ok"]
    check(program.replay(trace), "identical")
    report = program.replay(trace, ("        task.cancel()", "        pass"))
    check(report, "diverged", "changed", "ended by the agent")
    assert "When recorded it was cancelled here; now it is still waited for." in str(report)


def test_a_deterministic_step_really_runs_and_is_compared(program: Any, backend: Any) -> None:
    trace = program.record(WORKFLOW, "hello")
    check(program.replay(trace), "identical")
    report = program.replay(trace, ("LIMIT = 3", "LIMIT = 9"))
    check(report, "diverged", "changed", "state")
    assert "code changed: LIMIT (agent.py:4)" in str(report)
    assert "route" in str(report)
