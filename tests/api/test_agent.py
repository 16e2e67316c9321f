"""Agents end to end: recorded, then replayed from the trace with the real functions forbidden."""

from __future__ import annotations

import asyncio
import datetime as dt
import random as stdlib_random
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import DivergenceError, Trace, agent, sync, tool
from agentloom.errors import NoActiveRun, RecordedError, ValueRefused
from agentloom.store import LocalStore

RAN: list[str] = []
"""The names of the tools that really ran, in order."""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path / "store"))
    RAN.clear()
    return tmp_path / "store"


class Trouble(Exception):
    """Something that a tool raises."""


@tool(effect="read")
def lookup(order: int) -> dict[str, Any]:
    RAN.append(f"lookup {order}")
    if order == 13:
        raise Trouble("unlucky", order)
    return {"total": 40, "lines": [order, 2.0], "when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}


@tool
async def refund(order: int, amount: float = 0.5) -> str:
    RAN.append(f"refund {order}")
    await asyncio.sleep(0.001 * stdlib_random.random())
    return f"ok {order} {amount}"


def replayed(trace: Trace) -> None:
    """Replay in the process; nothing may run, everything must match."""
    before = list(RAN)
    report = trace.replay()
    assert report.verdict == "identical"
    assert before == RAN


@agent
def sync_support(order: int) -> dict[str, Any]:
    found = lookup(order)
    found["mutated"] = True
    try:
        lookup(13)
    except Trouble as trouble:
        caught = list(trouble.args)
    return {"found": found, "caught": caught, "at": sync.now(), "id": sync.uuid(), "draw": sync.random()}


def test_sync_agent_records_and_replays() -> None:
    trace = sync_support.run(812, seed=7, tags={"ticket": "T1"})
    assert trace.status == "completed"
    assert [call.name for call in trace.calls] == ["lookup", "lookup", "now", "uuid4", "random"]
    assert trace.output["found"]["mutated"] is True
    assert trace.output["caught"] == ["unlucky", 13]
    assert trace.tags == {"ticket": "T1"}
    replayed(trace)


def test_seeded_draws_repeat_across_runs() -> None:
    first = sync_support.run(812, seed=7)
    second = sync_support.run(812, seed=7)
    assert first.output["draw"] == second.output["draw"]
    assert first.output["id"] != second.output["id"]
    assert first.run_id != second.run_id


@agent
async def async_support(orders: list[int]) -> list[str]:
    results = await asyncio.gather(*(refund(order) for order in orders))
    first, _ = await asyncio.wait(
        [asyncio.ensure_future(refund(order, 1.5)) for order in orders], return_when=asyncio.FIRST_COMPLETED
    )
    winners = sorted(task.result() for task in first)
    async with asyncio.TaskGroup() as group:
        late = [group.create_task(refund(order, 2.5)) for order in orders]
    return [*results, *winners, *(task.result() for task in late)]


def test_async_agent_replays_its_races() -> None:
    for _ in range(5):
        trace = async_support.run([1, 2, 3, 4])
        assert trace.status == "completed"
        replayed(trace)


def test_async_inside_a_running_loop() -> None:
    async def service() -> Trace:
        trace = await async_support.arun([1, 2])
        replayed(trace)
        return trace

    assert asyncio.run(service()).status == "completed"


def test_run_inside_a_running_loop_is_refused_with_the_remedy() -> None:
    async def service() -> None:
        async_support.run([1])

    with pytest.raises(agentloom.LoomError, match="arun"):
        asyncio.run(service())


@agent
async def timeouts() -> list[str]:
    log: list[str] = []
    try:
        async with asyncio.timeout(0.01):
            await agentloom.sleep(30)
    except TimeoutError:
        log.append("timeout")
    try:
        await asyncio.wait_for(agentloom.sleep(30), 0.005)
    except TimeoutError:
        log.append("wait_for")
    await asyncio.sleep(0.002)
    return log


def test_timeouts_cancel_the_call_and_replay_without_waiting() -> None:
    trace = timeouts.run()
    assert trace.output == ["timeout", "wait_for"]
    assert [call.status for call in trace.calls] == ["cancelled", "cancelled"]
    replayed(trace)


@agent
async def parent(n: int) -> int:
    return sum(await agentloom.parallel(*(child(i) for i in range(n))))


@agent
async def child(i: int) -> int:
    await refund(i)
    return i * 2


def test_child_agents_and_parallel_have_structural_paths() -> None:
    trace = parent.run(3)
    assert trace.output == 6
    ids = {call.id for call in trace.calls if call.kind == "tool"}
    assert ids == {f"root/parent/parallel[{i}]/child[0]#1" for i in range(3)}
    replayed(trace)


@agent
def threaded(n: int) -> list[Any]:
    def branch(i: int) -> Any:
        first = lookup(i)["total"]
        second = sync.step(sum, [i, i])
        return [first, second, *sync.parallel(sync.random, lambda: lookup(i)["lines"])]

    return sync.parallel(*(lambda i=i: branch(i) for i in range(n)))


def test_sync_parallel_replays_its_order() -> None:
    trace = threaded.run(4, seed=1)
    assert len(trace.calls) == 16
    replayed(trace)


def test_an_error_of_the_agent_is_raised_and_recorded() -> None:
    @agent
    def fails() -> None:
        lookup(13)

    with pytest.raises(Trouble) as caught:
        fails.run()
    assert any("recorded as run" in note for note in caught.value.__notes__)
    trace = Trace.open("last")
    assert trace.status == "failed"
    assert isinstance(trace.error, Trouble | RecordedError)
    assert trace.replay(agent=fails).verdict == "identical"


def test_a_changed_argument_diverges_whatever_the_agent_catches() -> None:
    order = 812

    @agent
    def swallow() -> str:
        try:
            lookup(order)
        except BaseException:  # noqa: BLE001 - what careless agents do
            return "fine"
        return "fine"

    trace = swallow.run()
    order = 813
    with pytest.raises(DivergenceError) as caught:
        trace.replay()
    report = caught.value.report
    assert report.verdict == "diverged"
    assert RAN == ["lookup 812"]
    assert trace.replay(check=False).verdict == "diverged"


def test_a_result_that_cannot_be_kept_is_refused_when_recorded() -> None:
    @tool(effect="read")
    def session() -> dict[str, Any]:
        return {"a": [0, 1, {"db": object()}]}

    @agent
    def uses() -> str:
        try:
            session()
        except ValueRefused as refused:
            return refused.path
        return "kept"

    trace = uses.run()
    assert trace.output.endswith("a[2].db")
    replayed(trace)


def test_outside_a_run_tools_are_functions_and_host_functions_are_refused() -> None:
    assert lookup(1)["total"] == 40
    with pytest.raises(NoActiveRun, match="now"):
        sync.now()


def test_a_run_inside_a_run_is_refused_with_the_remedy() -> None:
    @agent
    def outer() -> Any:
        return sync_support.run(1)

    with pytest.raises(agentloom.LoomError, match="child agent"):
        outer.run()


def test_arguments_are_captured_at_the_moment_of_the_call() -> None:
    @tool(effect="write")
    def append(items: list[int]) -> int:
        items.append(99)
        return len(items)

    @agent
    def mutates() -> list[int]:
        items = [1]
        append(items)
        items.append(2)
        append(items)
        return items

    trace = mutates.run()
    assert trace.output == [1, 2]
    assert [call.request["args"]["items"] for call in trace.calls] == [[1], [1, 2]]
    replayed(trace)


def test_notes_and_flags_and_memory() -> None:
    @agent
    async def remembers() -> Any:
        await agentloom.memory.put("plan", {"steps": [1, 2]})
        await agentloom.note({"why": "because"})
        await agentloom.flag("look at this")
        return [await agentloom.memory.get("plan"), await agentloom.memory.search("plan")]

    trace = remembers.run()
    assert trace.output[0] == {"steps": [1, 2]}
    kinds = [entry["kind"] for entry in trace.journal.entries]
    assert kinds.count("note") == 1
    assert kinds.count("flag") == 1
    replayed(trace)


ALWAYS_THE_SAME = ValueError("out of order")


def test_an_error_object_that_is_raised_in_run_after_run_replays(tmp_path: Path) -> None:
    """Where its run is kept is noted on the error after the run; that note is no part of the next one."""

    @agent
    def fails_alike() -> None:
        raise ALWAYS_THE_SAME

    store = LocalStore(tmp_path)
    for count in (1, 2):
        with pytest.raises(ValueError, match="out of order") as caught:
            fails_alike.run(store=store)
        assert len(caught.value.__notes__) == count
    for row in store.runs():
        trace = Trace.open(row.run, store=store)
        assert trace.replay(agent=fails_alike).verdict == "identical"
