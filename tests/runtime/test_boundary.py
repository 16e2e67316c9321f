"""The boundary: calls and streams from agents' code, whatever they do with them. Each run is replayed."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

import agentloom
from agentloom import agent, tool
from agentloom import sync as agentloom_sync
from agentloom.runtime.boundary import call_async, call_inline, open_async, open_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.scope import current
from tests.runtime.fakes import fails, recorded

LOG: list[object] = []


@pytest.fixture(autouse=True)
def empty() -> None:
    LOG.clear()


def source(count: int, error: Exception | None = None) -> Callable[[Call], Iterator[object]]:
    def chunks(_: Call) -> Iterator[object]:
        try:
            yield from range(count)
            if error is not None:
                raise error
        finally:
            LOG.append("closed")

    return chunks


def asource(
    count: int, error: Exception | None = None, *, forever: bool = False
) -> Callable[[Call], AsyncIterator[object]]:
    async def chunks(_: Call) -> AsyncIterator[object]:
        try:
            for number in range(count):
                yield number
            if error is not None:
                raise error
            if forever:
                await asyncio.Event().wait()
        finally:
            LOG.append("closed")

    return chunks


def spec(name: str = "s") -> CallSpec:
    return CallSpec("model", name, {}, stream=True)


# -- awaited streams


@agent
async def reads(how: str) -> Any:
    broken = ValueError("broke") if how == "broken" else None
    async with open_async(spec(), asource(3, broken)) as stream:
        got: list[object] = []
        try:
            async for chunk in stream:
                got.append(chunk)
                if how == "left" and len(got) == 2:
                    break
        except ValueError as error:
            got.append(str(error))
    await stream.aclose()
    after = [chunk async for chunk in stream]  # read after the end, and closed twice
    return got, after


@pytest.mark.parametrize(
    ("how", "got", "status"),
    [("whole", [0, 1, 2], "ok"), ("left", [0, 1], "closed"), ("broken", [0, 1, 2, "broke"], "error")],
)
def test_awaited_streams_end_as_they_did(how: str, got: list[object], status: str) -> None:
    trace = recorded(reads, how)
    assert trace.output == (got, [])
    assert trace.calls[0].status == status
    assert trace.calls[0].chunks == got[: 2 if how == "left" else 3]
    assert LOG == ["closed"]


@agent
async def reads_sync(how: str) -> Any:
    return read_blocking(how)


@agent
def read(how: str) -> Any:
    return read_blocking(how)


def read_blocking(how: str) -> Any:
    broken = ValueError("broke") if how == "broken" else None
    with open_inline(spec(), source(3, broken)) as stream:
        got: list[object] = []
        try:
            for chunk in stream:
                got.append(chunk)
                if how == "left" and len(got) == 2:
                    break
        except ValueError as error:
            got.append(str(error))
    stream.close()
    return got, list(stream)


@pytest.mark.parametrize("which", [read, reads_sync])
@pytest.mark.parametrize(
    ("how", "got", "status"),
    [("whole", [0, 1, 2], "ok"), ("left", [0, 1], "closed"), ("broken", [0, 1, 2, "broke"], "error")],
)
def test_blocking_streams_end_as_they_did(which: Any, how: str, got: list[object], status: str) -> None:
    trace = recorded(which, how)
    assert trace.output == (got, [])
    assert trace.calls[0].status == status
    assert LOG == ["closed"]


def test_an_error_of_opening_is_an_outcome_like_any_other() -> None:
    def refuses(_: Call) -> Any:
        raise ConnectionError("refused")

    @agent
    async def opening() -> list[str]:
        said: list[str] = []
        try:
            async for _ in open_async(spec(), refuses):
                pass
        except ConnectionError as error:
            said.append(str(error))
        try:
            list(open_inline(spec(), refuses))
        except ConnectionError as error:
            said.append(str(error))
        return said

    trace = recorded(opening)
    assert trace.output == ["refused", "refused"]
    assert [call.status for call in trace.calls] == ["error", "error"]


def test_a_stream_nobody_closes_is_closed_with_the_run() -> None:
    @agent
    def forgets() -> object:
        return next(open_inline(spec(), source(3)))

    @agent
    async def forgets_too() -> object:
        return await anext(open_async(spec(), asource(3, forever=True)))

    for which in (forgets, forgets_too):
        LOG.clear()
        trace = recorded(which)
        assert (trace.output, trace.calls[0].status, LOG) == (0, None, ["closed"])


def test_a_reader_that_is_cancelled_ends_the_stream_there() -> None:
    @agent
    async def impatient() -> Any:
        stream = open_async(spec(), asource(2, forever=True))
        got: list[object] = []

        async def reader() -> None:
            async for chunk in stream:
                got.append(chunk)  # noqa: PERF401 - what came before the cancellation counts

        task = asyncio.create_task(reader())
        while len(got) < 2:
            await agentloom.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return got, task.cancelled(), [chunk async for chunk in stream]

    trace = recorded(impatient)
    assert trace.output == ([0, 1], True, [])
    assert (trace.calls[0].status, trace.calls[0].chunks) == ("cancelled", [0, 1])


def test_two_readers_of_one_stream_are_refused_as_by_a_generator() -> None:
    @agent
    async def both() -> list[str]:
        stream = open_async(spec(), asource(1))
        results = await asyncio.gather(anext(stream), anext(stream), return_exceptions=True)
        return [str(result) for result in results]

    first, second = recorded(both).output
    assert first == "0"
    assert "already being read" in second


def test_who_waits_for_a_chunk_when_another_task_leaves_the_stream_sees_its_end() -> None:
    @agent
    async def left() -> list[object]:
        stream = open_async(spec(), asource(1, forever=True))

        async def reader() -> list[object]:
            return [chunk async for chunk in stream]

        task = asyncio.create_task(reader())
        await agentloom.sleep(0.001)
        await stream.aclose()
        return await task

    trace = recorded(left)
    assert trace.output == [0]
    assert trace.calls[0].status == "closed"


def test_streams_nest() -> None:
    @agent
    async def nested() -> list[object]:
        got: list[object] = []
        async with open_async(spec("outer"), asource(3)) as outer:
            async for chunk in outer:
                async with open_async(spec("inner"), asource(5)) as inner:
                    got.append([chunk, await anext(inner)])
        return got

    trace = recorded(nested)
    assert trace.output == [[0, 0], [1, 0], [2, 0]]
    assert [call.status for call in trace.calls] == ["ok", "closed", "closed", "closed"]


# -- calls


def test_a_call_that_arrived_before_its_task_was_cancelled_keeps_its_outcome() -> None:
    @agent
    async def late() -> list[object]:
        async def performed(_: Call) -> int:
            return 5

        async def waits() -> object:
            return await call_async(CallSpec("tool", "t", {}), performed)

        task = asyncio.create_task(waits())
        other = asyncio.create_task(waits())
        other.add_done_callback(lambda _: task.cancel())  # by now the first one's outcome may be there
        results = await asyncio.gather(task, other, return_exceptions=True)
        return [type(result).__name__ for result in results]

    trace = recorded(late)
    assert trace.output[1] == "int"
    assert trace.calls[1].status == "ok"


def test_a_call_that_was_answered_is_no_work_for_the_collector() -> None:
    """An agent of many turns would leave its histories to the collector, one for each turn."""
    left: list[int] = []

    @agent
    async def several() -> None:
        made: list[weakref.ref[Call]] = []

        async def performed(call: Call) -> int:
            made.append(weakref.ref(call))
            return 5

        for _ in range(5):
            await call_async(CallSpec("tool", "t", {}), performed)
        left.append(sum(ref() is not None for ref in made))

    enabled = gc.isenabled()
    gc.disable()
    try:
        several.run(store=":memory:")
    finally:
        if enabled:
            gc.enable()
    assert left <= [1]  # the driver holds the last one


ENGINES: list[weakref.ref[Any]] = []


def _watched() -> None:
    scope = current()
    assert scope is not None
    ENGINES.append(weakref.ref(scope.session.engine))


@agent
def watched() -> None:
    _watched()
    agentloom_sync.now()


@agent
async def watched_async() -> None:
    _watched()
    await awaited()


@pytest.mark.parametrize("program", [watched, watched_async])
def test_a_run_and_its_replay_leave_nothing_to_the_collector(program: Any) -> None:
    """A process that runs many agents would hold the histories of all of them until the collector comes by."""
    ENGINES.clear()
    enabled = gc.isenabled()
    gc.disable()
    try:
        trace = program.run(store=":memory:")
        assert trace.replay().verdict == "identical"
        left = [ref() for ref in ENGINES]
    finally:
        if enabled:
            gc.enable()
    assert left == [None, None]


def test_cancelling_twice_cancels_once() -> None:
    @agent
    async def twice() -> str:
        task = asyncio.ensure_future(agentloom.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        task.cancel()
        await asyncio.wait([task])
        task.cancel()
        return "cancelled" if task.cancelled() else "?"

    trace = recorded(twice)
    assert trace.output == "cancelled"
    assert [call.status for call in trace.calls] == ["cancelled"]


def test_a_cancelled_calls_work_is_stopped_and_its_clean_up_is_no_outcome() -> None:
    @tool
    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            LOG.append("stopped")
        return "never"

    @agent
    async def gives_up() -> str:
        task = asyncio.ensure_future(cast("Any", slow()))
        await agentloom.sleep(0)  # by now the work has begun
        task.cancel()
        await asyncio.wait([task])
        await agentloom.sleep(0)
        return "gave up"

    trace = recorded(gives_up)
    assert trace.output == "gave up"
    assert LOG == ["stopped"]
    assert {call.name: call.status for call in trace.calls} == {"slow": "cancelled", "sleep": "ok"}


@pytest.mark.parametrize(
    "error", [StopIteration(1), StopAsyncIteration(), asyncio.CancelledError(), GeneratorExit()]
)
def test_errors_that_mean_something_to_python_are_told_apart(error: BaseException) -> None:
    @tool
    def raises() -> None:
        raise error

    @tool
    async def raises_later() -> None:
        raise error

    @agent
    async def careful() -> list[str]:
        seen: list[str] = []
        try:
            raises()
        except BaseException as caught:  # noqa: BLE001 - every kind
            seen.append(type(caught).__name__)
        try:
            await raises_later()
        except BaseException as caught:  # noqa: BLE001 - every kind
            seen.append(type(caught).__name__)
        return seen

    kind = type(error).__name__
    later = "RuntimeError" if isinstance(error, StopIteration) else kind
    assert recorded(careful).output == [kind, later]


def test_the_outcome_of_a_call_is_on_the_disk_when_the_agent_gets_it() -> None:
    from agentloom import Trace
    from agentloom.store import MemoryStore

    store = MemoryStore()
    statuses: list[object] = []

    @agent
    def looks() -> None:
        call_inline(
            CallSpec("tool", "t", {}), lambda _: statuses.append(Trace.open("last", store).calls[0].status)
        )
        statuses.append(Trace.open("last", store).calls[0].status)

    looks.run(store=store)
    assert statuses == [None, "ok"]  # the request before it is performed, the outcome before it is given


@tool
async def awaited() -> int:
    return 1


def test_an_async_tool_in_a_sync_agent_says_what_to_do() -> None:
    @agent
    def wrong() -> object:
        return asyncio.run(awaited())

    error, _ = fails(wrong)
    assert "awaited in a sync agent" in str(error)
    assert "make the agent async, or awaited sync" in str(error)


def test_a_host_function_in_the_wrong_kind_names_the_right_one() -> None:
    @agent
    def wrong() -> object:
        return asyncio.run(agentloom.sleep(0))

    error, _ = fails(wrong)
    assert "agentloom.sync.sleep" in str(error)
