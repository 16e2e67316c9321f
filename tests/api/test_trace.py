"""``Trace``: looking at a run, saving, loading, replaying, comparing, verifying."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import DivergenceError, Trace, Workflow, agent, tool
from agentloom.errors import IntegrityError, RunNotFound, TargetError
from agentloom.store import MemoryStore, open_store

LIMIT = [100]


@tool(effect="read")
def lookup(order: int) -> dict[str, int]:
    if order == 13:
        raise ValueError("unlucky", order)
    return {"total": order * 2}


@agent
def support(order: int, *, note: str = "") -> int:
    total = lookup(order)["total"]
    try:
        lookup(13)
    except ValueError:
        total += 1
    if total > LIMIT[0]:
        lookup(0)
    return total


@pytest.fixture
def trace() -> Trace:
    return support.run(20, note="n", store=MemoryStore(), tags={"ticket": "7"})


def test_it_says_what_happened(trace: Trace) -> None:
    assert (trace.status, trace.output, trace.error, trace.tags) == ("completed", 41, None, {"ticket": "7"})
    assert trace.input == {"args": [20], "kwargs": {"note": "n"}}
    first, second = trace.calls
    assert (first.number, first.id, first.path, first.kind, first.name, first.effect, first.status) == (
        1, "root/support#1", "root/support", "tool", "lookup", "read", "ok",
    )  # fmt: skip
    assert first.request["args"] == {"order": 20}
    assert (first.result, first.error, first.chunks, first.usage) == ({"total": 40}, None, [], None)
    assert (second.status, second.result) == ("error", None)
    assert isinstance(second.error, ValueError)
    assert second.error.args == ("unlucky", 13)
    assert first.src.endswith(" support")
    assert first.duration is not None
    assert f"<Trace {trace.run_id} completed, 2 calls>" == repr(trace)
    assert repr(first) == "<call 1 tool lookup ok>"


def test_payloads_are_fresh_each_time(trace: Trace) -> None:
    trace.calls[0].result["total"] = 0
    assert trace.calls[0].result == {"total": 40}


@pytest.mark.parametrize("name", ["run.loom", "run.loom.zst"])
def test_a_saved_trace_is_the_same_trace(trace: Trace, tmp_path: Path, name: str) -> None:
    trace.save(tmp_path / name)
    loaded = Trace.load(tmp_path / name)
    assert (loaded.run_id, loaded.head, loaded.output) == (trace.run_id, trace.head, trace.output)
    with pytest.raises(TargetError, match="does not know the agent that made it"):
        loaded.replay()
    assert loaded.replay(agent=support).verdict == "identical"


def test_a_divergence_is_raised_with_its_report_or_returned(trace: Trace) -> None:
    LIMIT[0] = 10
    try:
        with pytest.raises(DivergenceError) as caught:
            trace.replay()
        report = trace.replay(check=False)
    finally:
        LIMIT[0] = 100
    assert report.verdict == caught.value.report.verdict == "diverged"
    assert "extra" in str(caught.value)


def test_runs_are_opened_by_name(tmp_path: Path) -> None:
    made = support.run(3, store=tmp_path)
    for store in (tmp_path, str(tmp_path), open_store(tmp_path)):
        assert Trace.open("last", store).run_id == made.run_id
    assert Trace.open(made.run_id[-6:], tmp_path).output == 7
    with pytest.raises(RunNotFound):
        Trace.open("nothing", tmp_path)


def test_a_failed_run_keeps_its_error() -> None:
    @agent
    def failing() -> None:
        raise KeyError("gone")

    store = MemoryStore()
    with pytest.raises(KeyError) as caught:
        failing.run(store=store)
    assert "agentloom show" in caught.value.__notes__[0]
    trace = Trace.open("last", store)
    assert (trace.status, trace.output) == ("failed", None)
    assert isinstance(trace.error, KeyError)


def test_an_altered_file_is_not_loaded(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "a.loom")
    data = (tmp_path / "a.loom").read_bytes()
    (tmp_path / "a.loom").write_bytes(data.replace(b'"total":40', b'"total":41'))
    with pytest.raises(IntegrityError):
        Trace.load(tmp_path / "a.loom")


def test_verify_and_diff(trace: Trace) -> None:
    assert trace.verify(head=trace.head).unaltered is True
    assert trace.verify(head="0" * 64).unaltered is False
    other = support.run(21, note="n", store=MemoryStore())
    assert trace.diff(trace).same
    assert trace.diff(other).part == "input"


@pytest.mark.parametrize("thing", [5, "support"])
def test_what_is_no_agent_is_refused(trace: Trace, thing: object) -> None:
    with pytest.raises(TargetError, match="is not an agent"):
        trace.replay(agent=thing)


# -- traces of runs that failed --------------------------------------------------------------------------------------


@agentloom.agent
async def failing(order: int) -> str:
    """Fails after a call."""
    raise KeyError(lookup(order)["total"])


@agentloom.agent
def failing_sync(order: int) -> str:
    """The same, not awaited."""
    raise LookupError(str(order))


@pytest.mark.parametrize("kind", ["run", "arun", "sync", "workflow", "stream", "stream_sync"])
def test_an_error_leads_to_the_trace_of_its_run(kind: str) -> None:
    store = MemoryStore()
    graph = Workflow("w").step("fail", agent=failing, args={"order": "{input}"})
    starts: dict[str, Any] = {
        "run": lambda: failing.run(1, store=store),
        "arun": lambda: asyncio.run(failing.arun(1, store=store)),
        "sync": lambda: failing_sync.run(1, store=store),
        "workflow": lambda: graph.run(1, store=store),
        "stream": lambda: asyncio.run(watched(graph, store)),
        "stream_sync": lambda: list(graph.stream_sync(1, store=store)),
    }
    with pytest.raises(LookupError) as caught:
        starts[kind]()
    trace = agentloom.trace_of(caught.value)
    assert trace.status == "failed"
    assert trace.run_id == Trace.open("last", store).run_id
    assert type(trace.error) is type(caught.value)
    assert trace.replay().verdict == "identical"  # it knows its agent


async def watched(graph: Workflow, store: MemoryStore) -> None:
    stream = graph.stream(1, store=store)
    assert stream.trace is None
    try:
        async for _ in stream:
            pass
    finally:
        ended: Any = stream.trace
        assert (ended.status, ended.replay().verdict) == ("failed", "identical")


def test_an_error_raised_from_it_leads_there_too_and_any_other_says_so() -> None:
    store = MemoryStore()
    with pytest.raises(RuntimeError) as caught:  # noqa: PT012
        try:
            failing_sync.run(3, store=store)
        except LookupError as error:
            raise RuntimeError("the shop is closed") from error
    assert agentloom.trace_of(caught.value).input["args"] == [3]
    with pytest.raises(TargetError, match="ValueError was raised by no recorded run"):
        agentloom.trace_of(ValueError("x"))


def test_an_error_raised_by_two_runs_leads_to_the_last_and_is_recorded_as_it_was() -> None:
    store = MemoryStore()
    same = LookupError("always this one")

    @agentloom.agent
    def raises() -> None:
        raise same

    for number in range(2):
        with pytest.raises(LookupError) as caught:
            raises.run(store=store, tags={"number": str(number)})
    trace = agentloom.trace_of(caught.value)
    assert trace.tags == {"number": "1"}
    assert not getattr(trace.error, "__notes__", [])
    assert trace.replay().verdict == "identical"
    again = pickle.loads(pickle.dumps(caught.value))
    assert [type(note) for note in again.__notes__] == [str, str]


@pytest.mark.parametrize("how", ["opened", "loaded"])
def test_a_trace_that_does_not_know_its_agent_says_which_it_was(how: str, tmp_path: Path) -> None:
    store = MemoryStore()
    made = support.run(1, note="n", store=store)
    made.save(tmp_path / "a.loom")
    trace = Trace.open(made.run_id, store) if how == "opened" else Trace.load(tmp_path / "a.loom")
    with pytest.raises(TargetError, match=rf"\(support, {__name__}:support\)\n.*replay\(agent=") as caught:
        trace.replay()
    assert f"agentloom replay FILE, or {made.run_id}" in str(caught.value)
    assert trace.replay(agent=support).verdict == "identical"
