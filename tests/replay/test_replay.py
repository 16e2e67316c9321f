"""Replays of real programs: identical where nothing changed, and one clear finding where something did."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentloom import DivergenceError, Trace
from agentloom.errors import PayloadMissing
from agentloom.format.journal import Journal
from agentloom.replay.replayer import replay
from agentloom.replay.report import Report
from agentloom.runtime.agents import AgentFunction

ASYNC = """
import asyncio
from agentloom import agent, model, now, sleep, tool, uuid

NAMES = ["a", "bbb", "cc"]
DELAY = 0.001


@tool(effect="read")
async def search(q):
    await asyncio.sleep(DELAY * len(q))
    if q == "boom":
        raise ValueError("no " + q)
    return {"found": q}


async def late(q):
    await asyncio.sleep(0.5)
    return await search(q)


@agent
async def run(question):
    started = await now()
    found = await asyncio.gather(*(search(name) for name in NAMES))
    order = []
    for next_done in asyncio.as_completed([search(name) for name in NAMES]):
        order.append((await next_done)["found"])
    try:
        await search("boom")
    except ValueError as error:
        order.append(str(error))
    try:
        async with asyncio.timeout(0.002):
            await late("never")
    except TimeoutError:
        order.append("timeout")
    answer = await search(question)
    return {"found": found, "order": order, "at": started, "answer": answer}
"""

SYNC = '''
from agentloom import agent, tool
from agentloom.sync import now, uuid

SYSTEM = "Refund when paid."
ORDER = ["a", "b", "c"]


@tool(effect="read")
def search(q):
    """Look it up."""
    return "found " + q


@tool
def refund(amount):
    return "ok"


@agent
def run(question):
    found = [search(q) for q in ORDER]
    refund(40)
    return {"question": question, "found": found}
'''


def _check(report: Report, verdict: str, cls: str | None = None, reason: str | None = None) -> None:
    finding = report.finding
    print(report)
    assert report.verdict == verdict
    assert (finding.cls if finding else None) == cls
    if reason is not None:
        assert finding is not None
        assert finding.reason == reason
    assert len(str(report)) < 1200
    assert json.loads(json.dumps(report.to_json()))["class"] == cls
    assert report.exit_code() == (0 if report.ok else 3)


def test_an_async_program_replays_identically(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace)
    _check(report, "identical")
    assert (report.counts.exact, report.counts.total) == (len(trace.calls), len(trace.calls))


def test_a_sync_program_replays_identically(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace)
    _check(report, "identical")
    assert str(report).startswith("IDENTICAL  4/4 calls, output")


def test_moved_lines_comments_and_other_names_for_files_are_no_divergence(program: Any) -> None:
    trace = program.record(SYNC, "q")
    _check(program.replay(trace, ("SYSTEM", "# a comment\n\n\nSYSTEM")), "identical")


def test_a_failing_agent_replays_as_failing(program: Any) -> None:
    failing = SYNC.replace("    refund(40)", '    raise LookupError("no order", 812)')
    with pytest.raises(LookupError) as caught:
        program.record(failing, "q")
    assert "recorded as run" in caught.value.__notes__[0]
    trace = Trace.open("last", program.store)
    assert trace.status == "failed"
    _check(program.replay(trace), "identical")
    _check(program.replay(trace, ("812", "813")), "diverged", "output", "value")
    _check(
        program.replay(trace, ('    raise LookupError("no order", 813)\n', "")),
        "diverged",
        "output",
        "status",
    )


def test_a_changed_argument_names_the_field_and_the_constant(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("refund(40)", "refund(41)"))
    _check(report, "diverged", "changed", "request")
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
    _check(changed, "diverged", "changed", "request")
    missing = program.replay(trace, ('["a", "x", "c"]', '["a", "c"]'))
    _check(missing, "diverged", "missing", "skipped")
    assert 'search("b") was made here when recorded' in str(missing)
    exhausted = program.replay(trace, ('["a", "c"]', '["a", "b", "b", "c"]'))
    _check(exhausted, "diverged", "extra", "exhausted")
    assert "exhausted: recorded once, asked a second time at call 3" in str(exhausted)


def test_a_call_that_was_never_recorded_is_extra(program: Any) -> None:
    trace = program.record(SYNC, "q")
    _check(
        program.replay(trace, ("    refund(40)", "    uuid()\n    refund(40)")),
        "diverged",
        "extra",
        "unrecorded",
    )


def test_a_call_after_the_last_one_is_past_the_end(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("    refund(40)", "    refund(40)\n    search('z')"))
    _check(report, "diverged", "extra", "past the end")
    assert "The recording has 4 calls; this is one more." in str(report)


def test_an_agent_that_ends_early(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ("    refund(40)\n", ""))
    _check(report, "diverged", "ended early", "agent ends")
    assert "it went on with call 4 tool refund" in str(report)


def test_another_output(program: Any) -> None:
    trace = program.record(SYNC, "q")
    report = program.replay(trace, ('"found": found', '"found": found[:2]'))
    _check(report, "diverged", "output", "value")
    assert "output.found[2]" in str(report)
    ordered = program.replay(
        trace, ('{"question": question, "found": found[:2]}', '{"found": found, "question": question}')
    )
    _check(ordered, "diverged", "output", "value")


def test_other_order_of_the_same_calls_is_one_finding(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace, ('NAMES = ["a", "bbb", "cc"]', 'NAMES = ["cc", "a", "bbb"]'))
    _check(report, "diverged", "reordered", "order")
    assert report.finding is not None
    assert report.finding.sequences == (
        ('search("a")', 'search("bbb")', 'search("cc")'),
        ('search("cc")', 'search("a")', 'search("bbb")'),
    )
    assert "calls 2-4 of" in str(report)


def test_one_more_and_one_less_in_a_gather(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    more = program.replay(trace, ('"bbb", "cc"]', '"bbb", "dd", "cc"]'))
    _check(more, "diverged", "extra", "unrecorded")
    less = program.replay(trace, ('"bbb", "dd", "cc"]', '"cc"]'))
    _check(less, "diverged", "missing", "skipped")
    other = program.replay(trace, ('["a", "cc"]', '["a", "dddd", "cc"]'))
    _check(other, "diverged", "changed", "request")
    assert other.finding is not None
    assert other.finding.call is not None
    assert other.finding.call.index == 3


def test_an_awaited_call_that_is_not_made(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace, ("await search(question)", "await asyncio.sleep(0.1)"))
    _check(report, "diverged", "missing", "skipped")


def test_a_timer_that_is_longer_now(program: Any) -> None:
    trace = program.record(ASYNC, "q")
    report = program.replay(trace, ("timeout(0.002)", "timeout(0.4)"))
    _check(report, "diverged", "changed", "timer")


def test_a_value_that_leaked_is_named(program: Any) -> None:
    source = SYNC.replace("    refund(40)", "    import uuid as u\n    refund(str(u.uuid4()))")
    trace = program.record(source, "q")
    report = program.replay(trace)
    _check(report, "diverged", "leak", "request")
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
    _check(program.replay(trace), "identical")
    report = program.replay(trace, ("refund(40)", "refund(41)"))
    _check(report, "diverged", "changed", "request")


def test_an_effect_of_plain_code_is_refused_and_named(program: Any, tmp_path: Any) -> None:
    target = tmp_path / "written.txt"
    write = f"    import pathlib\n    pathlib.Path({str(target)!r}).write_text('x')\n    refund(40)"
    source = SYNC.replace("    refund(40)", write)
    trace = program.record(source, "q")
    target.unlink()
    report = program.replay(trace)
    _check(report, "diverged", "extra", "effect")
    assert not target.exists()
    assert "agent.py:24" in str(report)


def test_check_raises_with_the_report(program: Any) -> None:
    trace = program.record(SYNC, "q")
    module = program.load(SYNC.replace("refund(40)", "refund(41)"))
    with pytest.raises(DivergenceError) as caught:
        trace.replay(agent=module.run)
    assert caught.value.report.finding.cls == "changed"


# -- model calls ---------------------------------------------------------------------------------------------------

MODEL = """
from agentloom import agent, model

SYSTEM = "Answer in one sentence. Ask before deleting."


@agent
async def run(question):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    for _ in range(3):
        answer = await model("fake", messages=messages, temperature=0, user="ann")
        messages.append({"role": "assistant", "content": answer.text})
    return messages[-1]["content"]
"""


def test_a_changed_prompt_is_reported_with_its_constant(program: Any, backend: Any) -> None:
    trace = program.record(MODEL, "q")
    assert backend.calls == 3
    report = program.replay(trace, (" Ask before deleting.", ""))
    _check(report, "diverged", "changed", "request")
    text = str(report)
    assert "- Answer in one sentence. Ask before deleting." in text
    assert "code changed: SYSTEM (agent.py:4)" in text
    assert "same: 1 later message, parameters" in text
    assert backend.calls == 3


def test_noted_fields_are_counted_and_listed(program: Any, backend: Any) -> None:
    trace = program.record(MODEL, "q")
    report = program.replay(trace, ('user="ann"', 'user="bob"'))
    _check(report, "identical except noted")
    assert (report.counts.exact, report.counts.noted) == (0, 3)
    assert report.exit_code(strict_noted=True) == 3
    assert str(report).startswith("IDENTICAL EXCEPT NOTED (3)  3/3 calls, output")
    assert 'user "ann" -> "bob"' in str(report)
    gone = program.replay(trace, (', user="bob"', ""))
    _check(gone, "identical except noted")
    assert 'user "ann" -> (absent)' in str(gone)


STREAM = """
from agentloom import agent, model, now
from agentloom.sync import model as ask

LIMIT = 3


@agent
async def run(question):
    words = []
    async with await model("fake", messages=question, stream=True) as stream:
        async for word in stream:
            words.append(word)
            if len(words) >= LIMIT:
                break
    return words
"""
SYNC_STREAM = (
    STREAM.replace("async with await model", "with ask")
    .replace("async for", "for")
    .replace("async def", "def")
)


@pytest.mark.parametrize("source", [STREAM, SYNC_STREAM], ids=["async", "sync"])
def test_a_stream_left_early_breaks_at_the_same_chunk(program: Any, backend: Any, source: str) -> None:
    backend.answers = ["one two three four five"]
    trace = program.record(source, "q")
    assert trace.output == ["one ", "two ", "three "]
    _check(program.replay(trace), "identical")
    further = program.replay(trace, ("LIMIT = 3", "LIMIT = 4"))
    _check(further, "diverged", "extra", "reads further")
    assert "left it after 3" in str(further)
    earlier = program.replay(trace, ("LIMIT = 4", "LIMIT = 2"))
    _check(earlier, "diverged", "changed", "ended by the agent")


def test_a_stream_that_is_closed_later_at_the_same_chunk_is_the_same(program: Any, backend: Any) -> None:
    backend.answers = ["one two three four five"]
    trace = program.record(STREAM.replace("    return words", "    await now()\n    return words"), "q")
    assert [call.status for call in trace.calls] == ["closed", "ok"]
    inside = (
        "            if len(words) >= LIMIT:\n",
        "            if len(words) >= LIMIT:\n                await now()\n",
    )
    report = program.replay(trace, ("    await now()\n", ""), inside)
    _check(report, "identical")


@pytest.mark.parametrize("source", [STREAM, SYNC_STREAM], ids=["async", "sync"])
def test_a_stream_read_to_its_end(program: Any, backend: Any, source: str) -> None:
    backend.answers = ["one two three four five"]
    trace = program.record(source.replace("LIMIT = 3", "LIMIT = 9"), "q")
    assert len(trace.output) == 5
    _check(program.replay(trace), "identical")


# -- traces that are not whole ---------------------------------------------------------------------------------------


def _cut(trace: Trace, kind: str, number: int) -> Journal:
    """The trace as a crash would leave it: everything up to and with the n-th entry of a kind."""
    lines = trace._data.splitlines(keepends=True)
    seen = 0
    for index, line in enumerate(lines):
        seen += f'"kind":"{kind}"'.encode() in line
        if seen == number:
            return Journal.parse(b"".join(lines[: index + 1]))
    raise AssertionError(kind)


@pytest.mark.parametrize(("kind", "number", "matched"), [("request", 3, 3), ("outcome", 2, 2)])
@pytest.mark.parametrize("source", [SYNC, ASYNC], ids=["sync", "async"])
def test_a_recording_that_ends_in_a_crash(
    program: Any, source: str, kind: str, number: int, matched: int
) -> None:
    trace = program.record(source, "q")
    report = replay(_cut(trace, kind, number), program.load().run.function)
    _check(report, "diverged", "ended early", "recording ends")
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
    _check(program.replay(trace), "identical")
    report = program.replay(trace, ('"a",', '"z",'))
    _check(report, "diverged", "changed", "request")


# -- structure -------------------------------------------------------------------------------------------------------

CHILD = """
import asyncio
from agentloom import agent, tool

FACTOR = 2


@tool(effect="read")
async def count(word):
    return len(word)


@agent
async def helper(word):
    return FACTOR * await count(word)


@agent
async def run(words):
    return sum(await asyncio.gather(*(helper(word) for word in words)))
"""


def test_child_agents_replay_and_their_results_are_compared(program: Any) -> None:
    trace = program.record(CHILD, ["a", "bb"])
    _check(program.replay(trace), "identical")
    report = program.replay(trace, ("FACTOR = 2", "FACTOR = 3"))
    _check(report, "diverged", "output", "child")
    assert "FACTOR" in str(report)


CANCEL = """
import asyncio
from agentloom import agent, tool


@tool(effect="read")
async def slow(name):
    await asyncio.sleep({"quick": 0.001}.get(name, 5))
    return name


@agent
async def run():
    tasks = [asyncio.ensure_future(slow(name)) for name in ("first", "quick", "third")]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    await slow("quick")
    return sorted(task.result() for task in done)
"""


def test_cancelled_calls_are_cancelled_at_the_same_point(program: Any) -> None:
    trace = program.record(CANCEL)
    assert [call.status for call in trace.calls] == ["cancelled", "ok", "cancelled", "ok"]
    _check(program.replay(trace), "identical")
    report = program.replay(trace, ("        task.cancel()", "        pass"))
    _check(report, "diverged", "changed", "ended by the agent")
    assert "When recorded it was cancelled here; now it is still waited for." in str(report)


STRANDS = """
import time
from agentloom import agent, tool
from agentloom.sync import parallel

NAMES = ["aaa", "b", "cc"]
LOG = []


@tool(effect="read")
def search(q):
    time.sleep(0.002 * len(q))
    return q


def branch(q):
    found = search(q)
    LOG.append(q)
    return search(found + "!")


@agent
def run():
    LOG.clear()
    found = parallel(*[lambda name=name: branch(name) for name in NAMES])
    return {"found": found, "log": list(LOG)}
"""


def test_threads_of_a_sync_agent_replay_in_their_order(program: Any) -> None:
    trace = program.record(STRANDS)
    _check(program.replay(trace), "identical")
    changed = program.replay(trace, ('"b", "cc"', '"x", "cc"'))
    _check(changed, "diverged", "changed", "request")
    _check(
        program.replay(trace, ('["aaa", "x", "cc"]', '["b", "aaa", "cc"]')), "diverged", "reordered", "order"
    )


SPIN = """
import asyncio
from agentloom import agent, now, tool


@tool(effect="read")
async def slow(name):
    await asyncio.sleep(0.01)
    return name


@agent
async def run():
    task, turns = asyncio.ensure_future(slow("x")), 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
        if turns % 4000 == 0:
            await now()
    return turns
"""


def test_an_agent_that_polls_the_loop_replays_turn_by_turn(program: Any) -> None:
    trace = program.record(SPIN)
    _check(program.replay(trace), "identical")


def test_a_replay_inside_a_running_loop(program: Any) -> None:
    trace = program.record(ASYNC, "q")

    async def inside() -> Report:
        return program.replay(trace)  # type: ignore[no-any-return]

    _check(asyncio.run(inside()), "identical")


def test_an_async_agent_cannot_swallow_a_divergence(program: Any) -> None:
    source = ASYNC.replace("    except ValueError as error:", "    except BaseException as error:")
    trace = program.record(source, "q")
    _check(program.replay(trace), "identical")
    _check(program.replay(trace, ('search("boom")', 'search("bang")')), "diverged", "changed", "request")


WORKFLOW = """
from agentloom import Workflow

LIMIT = 3


def route(state):
    return "long" if len(state["input"]) > LIMIT else "short"


graph = Workflow()
graph.step("route", fn=route)
graph.step("respond", model="fake")
run = graph
"""


def test_a_deterministic_step_really_runs_and_is_compared(program: Any, backend: Any) -> None:
    trace = program.record(WORKFLOW, "hello")
    _check(program.replay(trace), "identical")
    report = program.replay(trace, ("LIMIT = 3", "LIMIT = 9"))
    _check(report, "diverged", "changed", "state")
    assert "code changed: LIMIT (agent.py:4)" in str(report)
    assert "route" in str(report)


def test_agents_are_found_by_function(program: Any) -> None:
    trace = program.record(SYNC, "q")
    module = program.load()
    report = replay(trace.journal, AgentFunction.of(module.run.function.function, "another name"))
    _check(report, "identical")
