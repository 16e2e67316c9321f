"""Events of a run: what they say, that they change nothing, that leaving early cancels the run."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import agentloom
from agentloom import State, Trace, Workflow, goto
from agentloom.api.retries import Retry
from agentloom.events import Decided, Event, Finished, Retried, StepFinished, StepSkipped, StepStarted
from agentloom.store import MemoryStore


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Reading events, whole or in part, with a loop or without one, leaves Ctrl-C to whom it was."""
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def told(event: Event | Finished) -> tuple[Any, ...]:
    """An event in short."""
    if isinstance(event, Finished):
        return ("finished", event.trace.output)
    facts: dict[type, Callable[[Any], tuple[Any, ...]]] = {
        StepStarted: lambda it: ("started",),
        StepFinished: lambda it: ("ended", it.value),
        StepSkipped: lambda it: ("skipped", it.why),
        Decided: lambda it: ("decided", it.goto, it.others),
        Retried: lambda it: ("retried", it.attempt, it.delay, repr(it.error)),
    }
    place = event.step if event.visit == 1 else f"{event.step} {event.visit}"
    return (place if event.item is None else f"{place}[{event.item}]", *facts[type(event)](event))


def looped() -> Workflow:
    graph = Workflow("looped").step("draft", fn=lambda state: [state.visit])
    graph.step(
        "check", fn=lambda state: goto("draft") if state.visit == 1 else goto("send"), loop={"draft": 2}
    )
    graph.step("drop", fn=lambda state: 1).step("send", fn=lambda state: "sent", after="check")
    graph.step("mail", fn=lambda state: 1, when=lambda state: False)
    return graph


def test_events_say_what_happens() -> None:
    assert [told(event) for event in looped().stream_sync("in", store=MemoryStore())] == [
        ("draft", "started"),
        ("draft", "ended", [1]),
        ("check", "started"),
        ("check", "decided", "draft", ("drop", "send")),
        ("check", "ended", "draft"),
        ("draft 2", "started"),
        ("draft 2", "ended", [2]),
        ("check 2", "started"),
        ("check 2", "decided", "send", ("drop", "draft")),
        ("check 2", "ended", "send"),
        ("drop", "skipped", "not taken"),
        ("send", "started"),
        ("send", "ended", "sent"),
        ("mail", "skipped", "when"),
        ("finished", "sent"),
    ]


def test_items_and_steps_of_sub_workflows_have_their_places() -> None:
    inner = Workflow("inner").step("one", fn=lambda state: state.input)
    graph = Workflow("outer").step("each", fn=lambda state: state.item, each=lambda state: ["a"])
    graph.step("sub", workflow=inner)
    assert [told(event)[:2] for event in graph.stream_sync("in", store=MemoryStore())] == [
        ("each", "started"),
        ("each[0]", "started"),
        ("each[0]", "ended"),
        ("each", "ended"),
        ("sub", "started"),
        ("sub/one", "started"),
        ("sub/one", "ended"),
        ("sub", "ended"),
        ("finished", "in"),
    ]


def test_retries_are_told() -> None:
    async def flaky(state: State) -> str:
        if await agentloom.random() < 2 and not failed:
            failed.append(1)
            raise ConnectionError("no")
        return "ok"

    failed: list[int] = []
    policy = Retry(attempts=2, delay=0.001, jitter=0, on=ConnectionError)
    events = Workflow("w").step("a", fn=flaky, retry=policy).stream_sync("in", store=MemoryStore())
    assert ("a", "retried", 1, 0.001, "ConnectionError('no')") in [told(event) for event in events]


def _entries(trace: Trace) -> list[dict[str, Any]]:
    """Entries without what differs from run to run."""
    loose = (
        "prev",
        "at",
        "val",
        "req",
        "key",
        "code",
        "env",
        "input",
        "policy",
        "nonce",
        "run",
        "clock",
        "dur",
        "vt",
    )
    return [
        {name: value for name, value in entry.items() if name not in loose} for entry in trace.journal.entries
    ]


@pytest.mark.usefixtures("no_ticks")
def test_a_watched_run_leaves_the_same_record() -> None:
    @agentloom.tool(effect="read")
    async def ask(text: str) -> list[str]:
        await asyncio.sleep(0)
        return [text]

    graph = (
        Workflow("w")
        .step("a", tool=ask, args={"text": "{input}"})
        .step("b", tool=ask, args={"text": "b"}, after=())
    )
    graph.step("c", fn=lambda state: [state.a, state.b], after=["a", "b"]).step(
        "d", fn=lambda state: goto("e")
    )
    graph.step("e", fn=lambda state: 1, when=lambda state: True)
    *_, finished = graph.stream_sync("in", seed=1, store=MemoryStore())
    assert isinstance(finished, Finished)
    plain = graph.run("in", seed=1, store=MemoryStore())
    assert _entries(finished.trace) == _entries(plain)
    assert finished.trace.replay(agent=graph).verdict == "identical"


def test_what_a_reader_does_with_a_value_changes_nothing() -> None:
    graph = Workflow().step("a", fn=lambda state: [1]).step("b", fn=lambda state: state.a)
    for event in graph.stream_sync("in", store=MemoryStore()):
        if isinstance(event, StepFinished):
            event.value.append(2)
        if isinstance(event, Finished):
            assert event.trace.output == [1]


def test_the_error_of_a_run_comes_after_its_events() -> None:
    store = MemoryStore()
    events = Workflow().step("a", fn=lambda state: 1 / 0).stream_sync("in", store=store)
    assert told(next(events)) == ("a", "started")
    with pytest.raises(ZeroDivisionError):
        next(events)
    assert Trace.open("last", store).status == "failed"


def waiting() -> Workflow:
    async def waits(state: State) -> None:
        await agentloom.sleep(30)

    return Workflow("waiting").step("a", fn=lambda state: 1).step("b", fn=waits)


def test_leaving_the_block_early_cancels_the_run_and_that_is_recorded() -> None:
    store = MemoryStore()

    async def main() -> None:
        async with waiting().stream("in", store=store) as events:
            async for event in events:
                if event.step == "b":  # type: ignore[union-attr]
                    break
            assert events.trace is None
        assert getattr(events.trace, "status", None) == "cancelled"
        assert [told(event) async for event in events] == []

    asyncio.run(main())
    trace = Trace.open("last", store)
    assert trace.status == "cancelled"
    assert trace.replay(agent=waiting()).verdict == "identical"


def test_an_error_of_the_reader_cancels_the_run_too() -> None:
    store = MemoryStore()

    async def main() -> None:
        async with waiting().stream("in", store=store) as events:
            async for _ in events:
                raise KeyError("reader")

    with pytest.raises(KeyError, match="reader"):
        asyncio.run(main())
    assert Trace.open("last", store).status == "cancelled"


def test_a_sync_reader_that_stops_cancels_the_run() -> None:
    store = MemoryStore()
    events = waiting().stream_sync("in", store=store)
    assert told(next(events)) == ("a", "started")
    del events
    gc.collect()
    assert Trace.open("last", store).status == "cancelled"


def test_a_stream_nobody_reads_starts_nothing() -> None:
    store = MemoryStore()

    async def main() -> None:
        async with waiting().stream("in", store=store):
            pass

    asyncio.run(main())
    assert not store.runs()


def test_a_stream_that_is_left_without_a_block_cancels_its_run() -> None:
    store = MemoryStore()

    async def main() -> None:
        async for event in waiting().stream("in", store=store):
            if isinstance(event, StepStarted) and event.step == "b":
                break
        gc.collect()
        for _ in range(20):
            await asyncio.sleep(0)
        assert Trace.open("last", store).status == "cancelled"

    asyncio.run(main())
