"""``Trace``: looking at a run, saving, loading, replaying, comparing, verifying."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom import DivergenceError, Trace, agent, tool
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
    with pytest.raises(TargetError, match="no agent was given"):
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
