"""``instrument`` above a function: one run for each call."""

from __future__ import annotations

import asyncio
import inspect
import os
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import DivergenceError, Trace, instrument, tool, trace_of
from agentloom.errors import NotRecorded, NotSupported
from agentloom.store import MemoryStore, open_store
from tests.api.recorded_programs import in_loop, look

STORE = MemoryStore()


@tool
def act(number: int) -> int:
    return number + 1


@instrument(store=STORE, tags=lambda number, *_, **__: {"job": str(number)})
async def worker(number: int) -> int:
    """Does a job."""
    return sum(await asyncio.gather(look(number), look(number + 1)))


@instrument(store=STORE)
def sync_worker(number: int, *, twice: bool = False) -> int:
    return act(act(number) if twice else number)


def last(store: MemoryStore = STORE) -> Trace:
    return Trace(store.read(store.resolve("last")))


@in_loop
async def test_each_call_is_a_run_that_replays_by_itself() -> None:
    assert await worker(3) == 14
    trace = last()
    assert trace.name == "worker"
    assert trace.tags == {"job": "3"}
    assert trace.input == {"args": [3], "kwargs": {}}
    assert trace.replay().verdict == "identical"


def test_sync_functions_are_run_where_they_stand() -> None:
    assert sync_worker(3, twice=True) == 5
    trace = last()
    assert trace.name == "sync_worker"
    assert len(trace.calls) == 2
    assert trace.replay().verdict == "identical"


def test_the_decorated_function_is_what_it_was() -> None:
    assert inspect.iscoroutinefunction(worker)
    assert not inspect.iscoroutinefunction(sync_worker)
    assert worker.__doc__ == "Does a job."
    assert list(inspect.signature(sync_worker).parameters) == ["number", "twice"]


def test_failures_are_kept_and_the_rest_is_gone() -> None:
    store = MemoryStore()

    @instrument(store=store, keep="failed")
    def job(number: int) -> int:
        if number == 2:
            raise KeyError("gone")
        return act(number)

    assert job(1) == 2
    assert not store.runs()
    with pytest.raises(KeyError) as raised:
        job(2)
    assert [row.status for row in store.runs()] == ["failed"]
    assert trace_of(raised.value).status == "failed"
    assert job(3) == 4
    assert len(store.runs()) == 1


def test_a_run_that_was_not_kept_says_so() -> None:
    async def coroutine(store: MemoryStore) -> Any:
        run = agentloom.record(agentloom.sleep(0), store=store, keep=never)
        await run
        with agentloom.record("flagged", store=store, keep="flagged") as flagged:
            await agentloom.flag("odd")
        assert flagged.recorded
        assert flagged.trace.status == "completed"
        return run

    store = MemoryStore()
    with agentloom.record("gone", store=store, keep="failed") as block:
        act(1)
        assert block.recorded
    for run, how in ((block, "keep='failed'"), (asyncio.run(coroutine(store)), "keep=never")):
        assert not run.recorded
        with pytest.raises(NotRecorded, match=rf"it was not kept \({how}\)"):
            _ = run.trace


def never(_: Trace) -> bool:
    return False


def test_a_decision_that_raises_keeps_the_run(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()

    def decide(trace: Trace) -> bool:
        raise ZeroDivisionError(trace.name)

    with agentloom.record("kept", store=store, keep=decide):
        act(1)
    assert len(store.runs()) == 1
    assert "keep= raised" in caplog.text


def test_a_large_run_is_held_in_a_file_and_nothing_half_is_left(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    for keep in ("failed", lambda trace: True):
        with agentloom.record("large", store=store, keep=keep) as run:
            run.output = [os.urandom(40_000).hex() for _ in range(100)]
    assert len(store.runs()) == 1
    assert store.runs()[0].size > 8_000_000
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith((".tmp", ".part"))]


@pytest.mark.parametrize("rate", [-0.1, 1.1, "0.5", True, float("nan")])
def test_a_rate_is_a_share(rate: Any) -> None:
    with pytest.raises(ValueError, match="rate="):
        instrument(rate=rate)


def test_what_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="keep="):
        instrument(keep="sometimes")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="keep="):
        agentloom.record("x", keep="sometimes")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="not an int"):
        instrument(3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="the class"):
        instrument(int)
    with pytest.raises(NotSupported, match="generator"):

        @instrument
        def numbers() -> Any:
            yield 1


def test_the_mode_holds_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sync_worker(5) == 6
    before = len(STORE.runs())
    monkeypatch.setenv("AGENTLOOM", "replay")
    assert sync_worker(5) == 6
    with pytest.raises(DivergenceError):
        sync_worker(6)
    monkeypatch.setenv("AGENTLOOM", "off")
    assert sync_worker(7) == 8
    assert len(STORE.runs()) == before


def test_in_a_run_a_worker_is_a_part_of_it() -> None:
    store = MemoryStore()

    @agentloom.agent
    def outer() -> int:
        return sync_worker(1)

    before = len(STORE.runs())
    trace = outer.run(store=store)
    assert [call.path for call in trace.calls] == ["root/outer/sync_worker[0]"]
    assert trace.replay().verdict == "identical"
    assert len(STORE.runs()) == before
