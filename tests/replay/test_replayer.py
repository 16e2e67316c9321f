"""Replays of whole programs: identical where nothing changed, and a verdict that nothing swallows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentloom import DivergenceError, Trace
from agentloom.replay.replayer import replay
from agentloom.replay.report import Report
from agentloom.runtime.agents import AgentFunction
from tests.replay.sources import ASYNC, MODEL, SPIN, STRANDS, SYNC, check


def test_an_async_program_replays_identically(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace)
    check(report, "identical")
    assert (report.counts.exact, report.counts.total) == (len(trace.calls), len(trace.calls))


def test_a_sync_program_replays_identically(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace)
    check(report, "identical")
    assert str(report).startswith("IDENTICAL  4/4 calls, output")


def test_moved_lines_comments_and_other_names_for_files_are_no_divergence(program: Any) -> None:
    trace = program.record(SYNC, "q")
    check(program.replay(trace, ("SYSTEM", "# a comment\n\n\nSYSTEM")), "identical")


def test_a_failing_agent_replays_as_failing(program: Any) -> None:
    failing = SYNC.replace("    refund(40)", '    raise LookupError("no order", 812)')
    with pytest.raises(LookupError) as caught:
        program.record(failing, "q")
    assert "recorded as run" in caught.value.__notes__[0]
    trace = Trace.open("last", program.store)
    assert trace.status == "failed"
    check(program.replay(trace), "identical")
    check(program.replay(trace, ("812", "813")), "diverged", "output", "value")
    check(
        program.replay(trace, ('    raise LookupError("no order", 813)\n', "")),
        "diverged",
        "output",
        "status",
    )


def test_a_value_that_leaked_is_named(program: Any) -> None:
    source = SYNC.replace("    refund(40)", "    import uuid as u\n    refund(str(u.uuid4()))")
    trace = program.record(source, "q", guard="off")
    report = program.replay(trace)
    check(report, "diverged", "leak", "request")
    text = str(report)
    assert "looks like  a version 4 UUID; in no earlier outcome" in text
    assert "Code and packages are as recorded" in text
    assert "args.amount" in text


@pytest.mark.parametrize("clause", ["except Exception:", "except BaseException:", "except:"])
def test_no_except_swallows_a_divergence(program: Any, clause: str) -> None:
    source = SYNC.replace(
        "    refund(40)", f"    try:\n        refund(40)\n    {clause}\n        found.append('no connection')"
    )
    trace = program.record(source, "q")
    check(program.replay(trace), "identical")
    report = program.replay(trace, ("refund(40)", "refund(41)"))
    check(report, "diverged", "changed", "request")


def test_check_raises_with_the_report(program: Any) -> None:
    trace = program.record(SYNC, "q")
    module = program.load(SYNC.replace("refund(40)", "refund(41)"))
    with pytest.raises(DivergenceError) as caught:
        trace.replay(agent=module.run)
    assert caught.value.report.finding.cls == "changed"


def test_a_changed_prompt_is_reported_with_its_constant(program: Any, backend: Any) -> None:
    trace = program.record(MODEL, "q")
    assert backend.calls == 3
    report = program.replay(trace, (" Ask before deleting.", ""))
    check(report, "diverged", "changed", "request")
    text = str(report)
    assert "- Answer in one sentence. Ask before deleting." in text
    assert "code changed: SYSTEM (agent.py:4)" in text
    assert "same: 1 later message, parameters" in text
    assert backend.calls == 3


def test_threads_of_a_sync_agent_replay_in_their_order(program: Any) -> None:
    trace = program.record(STRANDS)
    check(program.replay(trace), "identical")
    changed = program.replay(trace, ('"b", "cc"', '"x", "cc"'))
    check(changed, "diverged", "changed", "request")
    check(
        program.replay(trace, ('["aaa", "x", "cc"]', '["b", "aaa", "cc"]')), "diverged", "reordered", "order"
    )


def test_an_agent_that_polls_the_loop_replays_turn_by_turn(program: Any) -> None:
    trace = program.record(SPIN)
    check(program.replay(trace), "identical")


def test_a_replay_inside_a_running_loop(program: Any) -> None:
    trace = program.record(ASYNC, "q")

    async def inside() -> Report:
        return program.replay(trace)  # type: ignore[no-any-return]

    check(asyncio.run(inside()), "identical")


def test_an_async_agent_cannot_swallow_a_divergence(program: Any) -> None:
    source = ASYNC.replace("    except ValueError as error:", "    except BaseException as error:")
    trace = program.record(source, "q")
    check(program.replay(trace), "identical")
    check(program.replay(trace, ('search("boom")', 'search("bang")')), "diverged", "changed", "request")


def test_agents_are_found_by_function(program: Any) -> None:
    trace = program.record(SYNC, "q")
    module = program.load()
    report = replay(trace.journal, AgentFunction.of(module.run.function.function, "another name"))
    check(report, "identical")


def test_edits_that_make_no_difference_are_named(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(
        trace, ('return {"found": q}', 'return {"found": q, "more": 1}'), ("DELAY = 0.001", "DELAY = 0.002")
    )
    assert report.verdict == "identical"
    assert [note.partition(";")[0] for note in report.notes] == [
        "code changed: search()",
        "code changed: DELAY",
    ]
    assert "untried" in report.notes[0]
