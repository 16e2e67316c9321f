"""The boundary by itself: what it hands to the engine, the source and the baton, and what it says outside a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from agentloom.errors import Diverged, NoActiveRun, NotSupported, Stopped
from agentloom.runtime.boundary import (
    AsyncStream,
    SyncStream,
    call_async,
    call_inline,
    open_async,
    open_inline,
)
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.engine import Delivery
from agentloom.runtime.ledger import NoLedger
from agentloom.runtime.places import Places
from agentloom.runtime.scope import entered
from tests.runtime.fakes import Bench

SPEC = CallSpec("model", "m", {"q": 1})


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    with entered(made.session.root):
        yield made


def _none(call: Call) -> Any:
    return None


@pytest.mark.parametrize(
    "act", [call_inline, open_async, open_inline, lambda *given: asyncio.run(call_async(*given))]
)
def test_outside_a_run_the_function_that_was_called_is_named(act: Callable[..., object]) -> None:
    with pytest.raises(NoActiveRun, match=r"model\(\) was called outside a run") as caught:
        act(SPEC, _none)
    assert caught.value.fields == {"what": "model"}


@pytest.mark.parametrize("kind", ["model", "http", "sleep", "step", "retrieve"])
def test_what_is_awaited_in_a_sync_agent_is_named_with_its_other_form(bench: Bench, kind: str) -> None:
    for act in (open_async, lambda *given: asyncio.run(call_async(*given))):
        with pytest.raises(NotSupported, match=f"^{kind} m was awaited in a sync agent") as caught:
            act(CallSpec(kind, "m", {}), _none)
        assert caught.value.hint == f"use agentloom.sync.{kind} there, or make the agent async"
        with pytest.raises(NotSupported) as caught:
            act(CallSpec("tool", "find", {}), _none)
        assert caught.value.hint == "make the agent async, or find sync"
    assert bench.kinds == ["start"]


def test_a_call_of_a_strand_goes_to_the_baton(bench: Bench) -> None:
    baton: Any = SimpleNamespace(call=lambda *given: given, beside=True, scope_of=lambda scope: scope)
    bench.session.baton = baton
    assert call_inline(SPEC, _none) == (SPEC, bench.session.root, _none)
    assert bench.kinds == ["start"]


class Counting(Places):
    asked = 0

    def caller(self, above: int = 1) -> str:
        self.asked += 1
        return super().caller(above + 1)


def test_the_place_of_a_blocking_call_is_not_looked_for_by_a_replay(bench: Bench) -> None:
    bench.engine.ledger = NoLedger()
    bench.engine.places = places = Counting("/")
    assert call_inline(SPEC, lambda call: call.id) == "root/probe#1"
    assert places.asked == 0


def test_whoever_performs_gets_the_call(bench: Bench) -> None:
    performed: list[object] = []

    def perform(call: Call) -> Any:
        performed.append(call)
        return call.tree["q"]

    assert call_inline(SPEC, perform) == 1
    opened: list[Callable[[], object]] = []
    bench.source.open_inline = lambda call, perform: opened.append(perform)  # type: ignore[method-assign]
    bench.source.open = lambda call, perform: opened.append(perform)  # type: ignore[method-assign]
    stream = open_inline(SPEC, perform)
    loop: Any = SimpleNamespace()
    bench.session.loop = loop
    awaited = open_async(SPEC, perform)
    assert [one() for one in opened] == [1, 1]
    assert performed[1:] == [stream.call, awaited.call]
    assert bench.kinds[-2:] == ["request", "request"]


def test_a_verdict_of_the_source_is_the_runs(bench: Bench) -> None:
    verdict = Diverged("here")

    def inline(call: Call, perform: object) -> Arrival:
        raise verdict

    bench.source.inline = inline  # type: ignore[method-assign]
    with pytest.raises(Diverged) as caught:
        call_inline(SPEC, _none)
    assert caught.value is verdict
    assert bench.engine.failure is verdict


def _stream(bench: Bench, *coming: Callable[[Call], Arrival]) -> SyncStream:
    bench.source.coming.extend(coming)
    return open_inline(SPEC, _none)


def test_a_verdict_in_the_middle_of_a_stream_is_the_runs_and_ends_the_stream(bench: Bench) -> None:
    verdict = Diverged("here")

    def diverges(call: Call) -> Arrival:
        raise verdict

    stream = _stream(bench, lambda call: Arrival("chunk", call, value=1), diverges)
    assert next(stream) == 1
    with pytest.raises(Diverged):
        next(stream)
    assert bench.engine.failure is verdict
    with pytest.raises(StopIteration):
        next(stream)


def test_a_stream_ends_once_however_it_ends(bench: Bench) -> None:
    stream = _stream(bench, lambda call: Arrival("outcome", call, error=ValueError("broke")))
    with pytest.raises(ValueError, match="broke"):
        next(stream)
    assert list(stream) == []
    before = bench.kinds
    stream.close()
    assert bench.kinds == before
    left = _stream(bench)
    left.close()
    left.close()
    assert [told for told in bench.source.told if told[0] == "cancel"] == [
        ("cancel", (left.call.id, "closed"))
    ]
    assert list(left) == []


def test_a_stream_of_a_run_that_failed_gives_nothing_more(bench: Bench) -> None:
    stream = _stream(bench, lambda call: Arrival("chunk", call, value=1))
    bench.engine.failure = ValueError("a guard")
    with pytest.raises(Stopped):
        next(stream)
    assert len(bench.source.coming) == 1


def test_a_future_that_somebody_else_set_is_said(bench: Bench) -> None:
    started: list[Call] = []
    bench.source.start = lambda call, perform: started.append(call)  # type: ignore[method-assign]

    async def meddles() -> None:
        bench.session.loop = asyncio.get_running_loop()  # type: ignore[assignment]
        call = asyncio.ensure_future(call_async(SPEC, _none))
        await asyncio.sleep(0)
        future: Any = started[0].sink
        future.set_result("mine")
        await call

    with pytest.raises(TypeError, match="a host call's future was set by somebody else: 'mine'"):
        asyncio.run(meddles())


def _awaited(bench: Bench, read: Callable[[AsyncStream, Any], Awaitable[None]]) -> list[object]:
    """Open a stream, read it with ``read``, which ends the first wait; then read it again: what the source was told."""

    async def run() -> None:
        loop: Any = asyncio.get_running_loop()
        bench.session.loop = loop
        stream = open_async(SPEC, _none)
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        future: Any = stream.call.sink
        await read(stream, SimpleNamespace(first=first, future=future))
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(run())
    return [what for what, _ in bench.source.told]


def test_a_reader_that_was_cancelled_reads_nothing_more(bench: Bench) -> None:
    async def read(stream: AsyncStream, wait: Any) -> None:
        wait.first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait.first

    assert _awaited(bench, read) == ["begin", "open", "want", "cancel"]


def test_a_stream_that_broke_is_read_no_more(bench: Bench) -> None:
    async def read(stream: AsyncStream, wait: Any) -> None:
        wait.future.set_exception(ValueError("broke"))
        with pytest.raises(ValueError, match="broke"):
            await wait.first

    assert _awaited(bench, read) == ["begin", "open", "want"]


def test_a_stream_that_ended_is_read_no_more(bench: Bench) -> None:
    async def read(stream: AsyncStream, wait: Any) -> None:
        wait.future.set_result(Delivery(stream.call, "outcome"))
        with pytest.raises(StopAsyncIteration):
            await wait.first

    assert _awaited(bench, read) == ["begin", "open", "want"]


def test_a_stream_that_is_left_ends_for_whoever_waits(bench: Bench) -> None:
    async def read(stream: AsyncStream, wait: Any) -> None:
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await wait.first

    assert _awaited(bench, read) == ["begin", "open", "want", "cancel"]


def test_a_stream_is_read_in_its_own_loop_only(bench: Bench) -> None:
    loop: Any = SimpleNamespace()
    bench.session.loop = loop
    stream = open_async(SPEC, _none)
    bench.session.loop = None
    with pytest.raises(NotSupported, match="model m was awaited in a sync agent"):
        asyncio.run(anext(stream))
