"""Calls that are under way when their run ends: they go on as they would without it, and are told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest

from agentloom import Trace, instrument, record, replaying, tool, trace_of
from agentloom.errors import DivergenceError, NotRecorded
from agentloom.runtime.boundary import open_async, open_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.scope import current
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says
from tests.api.recorded_programs import in_loop, look

_BESIDE = 30
"""Seconds that nothing here comes near."""

sent: list[int] = []


class Gate:
    """What a call waits for; to be opened from any thread."""

    def __init__(self) -> None:
        self.began, self.opened = threading.Event(), threading.Event()

    async def passed(self) -> None:
        self.began.set()
        await asyncio.to_thread(self.opened.wait, _BESIDE)

    async def reached(self) -> None:
        await asyncio.to_thread(self.began.wait, _BESIDE)


gate = Gate()


@tool
async def mail(number: int) -> list[int]:
    await gate.passed()
    sent.append(number)
    return [number]


@tool
def mail_in_thread(number: int) -> list[int]:
    gate.began.set()
    gate.opened.wait(_BESIDE)
    sent.append(number)
    return [number]


@pytest.fixture
def store() -> MemoryStore:
    global gate
    gate = Gate()
    sent.clear()
    return MemoryStore()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.set_level(logging.WARNING, "agentloom.recording")
    return Lines(caplog)


class Lines(list[str]):
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __iter__(self) -> Iterator[str]:
        return iter([one.getMessage() for one in self._caplog.records])

    def __len__(self) -> int:
        return len(self._caplog.records)


def gaps(trace: Trace) -> list[Any]:
    return [entry["why"] for entry in trace.journal.entries if entry["kind"] == "gap"]


async def left_in_a_block(store: Any = None) -> tuple[Any, asyncio.Task[list[int]]]:
    with record("left", store=store) as run:
        task = asyncio.create_task(mail(7))
        if store is not None:
            await gate.reached()
        else:
            await asyncio.sleep(0)
        run.output = "accepted"
    return run, task


@in_loop
async def test_a_call_under_way_at_the_end_of_a_block_goes_on(store: MemoryStore, said: list[str]) -> None:
    run, task = await left_in_a_block(store)
    assert run.trace.status == "completed"  # the end was not waited for
    gate.opened.set()
    assert await task == [7]
    assert sent == [7]
    assert [call.status for call in run.trace.calls] == [None]
    assert not gaps(run.trace)
    assert run.trace.verify().complete
    (line,) = said
    assert f"run {run.run_id} of left ended while tool mail" in line
    assert "test_recording_left_behind.py:" in line


@in_loop
async def test_its_run_replays_and_the_call_is_not_made_again(store: MemoryStore) -> None:
    run, task = await left_in_a_block(store)
    gate.opened.set()
    await task
    with replaying(run.trace):
        again, task = await left_in_a_block()
        with pytest.raises(NotRecorded, match=r"tool mail .* came after the recorded run had ended"):
            await task
    assert again.report.verdict == "identical"
    assert sent == [7]


@in_loop
async def test_a_call_that_fails_after_the_end_raises_its_own_error(store: MemoryStore) -> None:
    error = KeyError("late")

    @tool
    async def fails() -> None:
        await gate.passed()
        raise error

    with record("fails", store=store):
        task = asyncio.create_task(fails())
        await gate.reached()
    gate.opened.set()
    with pytest.raises(KeyError) as raised:
        await task
    assert raised.value is error


@in_loop
async def test_what_its_task_does_next_belongs_to_no_run(store: MemoryStore) -> None:
    async def chain() -> list[int]:
        return await mail(1) + await mail(2)

    with record("chain", store=store) as run:
        task = asyncio.create_task(chain())
        await gate.reached()
    gate.opened.set()
    assert await task == [1, 2]
    assert len(run.trace.calls) == 1


@in_loop
async def test_a_call_cancelled_after_the_end(store: MemoryStore) -> None:
    run, task = await left_in_a_block(store)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.opened.set()
    assert [call.status for call in run.trace.calls] == [None]
    with replaying(run.trace):
        again, task = await left_in_a_block()
        task.cancel()
        await asyncio.wait([task])
    assert again.report.verdict == "identical"


@in_loop
async def test_a_call_in_a_thread_goes_on(store: MemoryStore) -> None:
    async def main(store: Any = None) -> tuple[Any, Any]:
        with record("thread", store=store) as run:
            task = asyncio.create_task(asyncio.to_thread(mail_in_thread, 3))
            if store is not None:
                await gate.reached()
            else:
                scope = current()
                assert scope is not None
                while not scope.session.engine.calls:  # noqa: ASYNC110 - until the thread has asked
                    await asyncio.sleep(0)
        return run, task

    run, task = await main(store)
    gate.opened.set()
    assert await task == [3]
    with replaying(run.trace):
        again, task = await main()
        with pytest.raises(NotRecorded, match="mail_in_thread"):
            await task
    assert again.report.verdict == "identical"
    assert sent == [3]


@in_loop
async def test_a_replay_that_waits_for_it_in_the_run_says_so(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentloom.replay.stock.MORE", 0.01)
    run, task = await left_in_a_block(store)
    gate.opened.set()
    await task
    with replaying(run.trace), pytest.raises(DivergenceError, match="the run ended before it came"):
        async with record("left"):
            await asyncio.create_task(mail(7))


async def parts(until: Gate) -> AsyncIterator[object]:
    yield "one"
    await until.passed()
    yield "two"


def parts_in_sync(until: Gate) -> Iterator[object]:
    yield "one"
    until.began.set()
    until.opened.wait(_BESIDE)
    yield "two"


def spec() -> CallSpec:
    return CallSpec("http", "stream", {}, stream=True)


@in_loop
async def test_a_stream_that_is_read_on_after_the_end(store: MemoryStore, said: list[str]) -> None:
    async def main(store: Any = None) -> tuple[Any, Any, Any]:
        with record("stream", store=store) as run:
            stream = open_async(spec(), lambda _: parts(gate))
            first = await anext(stream)
        return run, stream, first

    run, stream, first = await main(store)
    gate.opened.set()
    assert [first, *[part async for part in stream]] == ["one", "two"]
    assert (run.trace.calls[0].status, len(run.trace.calls)) == (None, 1)
    assert len(said) == 1
    with replaying(run.trace):
        again, stream, first = await main()
        assert first == "one"
        with pytest.raises(NotRecorded, match="http stream"):
            await anext(stream)
        await stream.aclose()
    assert again.report.verdict == "identical"


def test_a_sync_stream_that_is_read_on_after_the_end(store: MemoryStore, said: list[str]) -> None:
    def main(store: Any = None) -> tuple[Any, Any, Any]:
        with record("stream", store=store) as run:
            stream = open_inline(spec(), lambda _: parts_in_sync(gate))
            first = next(stream)
        return run, stream, first

    gate.opened.set()
    run, stream, first = main(store)
    assert [first, *stream] == ["one", "two"]
    assert run.trace.calls[0].status is None
    assert len(said) == 1
    with replaying(run.trace):
        again, stream, first = main()
        assert first == "one"
        with pytest.raises(NotRecorded, match="http stream"):
            next(stream)
    assert again.report.verdict == "identical"


def test_an_sdk_stream_that_a_block_gives_back(store: MemoryStore) -> None:
    messages: list[Any] = [{"role": "user", "content": "Hi"}]

    def main(client: openai.OpenAI, store: Any = None) -> tuple[Any, Any]:
        with record("sdk", store=store) as run:
            return run, client.chat.completions.create(model="m", messages=messages, stream=True)

    with (
        FakeProvider([Says("one two three")]) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="k", max_retries=0) as client,
    ):
        run, stream = main(client, store)
        text = "".join(part.choices[0].delta.content or "" for part in stream if part.choices)
    assert text == "one two three"
    assert run.trace.status == "completed"


@in_loop
async def test_a_request_that_leaves_a_call_behind(store: MemoryStore) -> None:
    tasks: list[asyncio.Task[list[int]]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tasks.append(asyncio.create_task(mail(7)))
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"accepted"})

    service: Any = instrument(app, store=store)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        pass

    await service({"type": "http", "method": "GET", "path": "/start", "headers": []}, receive, send)
    gate.opened.set()
    assert await tasks.pop() == [7]
    (row,) = store.runs()
    report = await service.replay_request(Trace.open(row.run, store))
    assert report.verdict == "identical"
    with contextlib.suppress(NotRecorded):
        await tasks.pop()
    assert sent == [7]


def test_show_says_that_the_run_ended_not_the_process(store: MemoryStore) -> None:
    from agentloom.cli.calls import result_text
    from agentloom.replay.recording import Recording

    async def main() -> Any:
        run, task = await left_in_a_block(store)
        gate.opened.set()
        await task
        return run.trace

    recording = Recording.from_journal(asyncio.run(main()).journal)
    text = result_text(recording, recording.calls[0], 80)
    assert text == "no outcome: it was under way when the run ended"


@in_loop
async def test_a_failing_block_leaves_its_calls_alone_too(store: MemoryStore) -> None:
    tasks: list[asyncio.Task[list[int]]] = []

    async def main() -> None:
        async with record("fails", store=store):
            tasks.append(asyncio.create_task(mail(7)))
            await gate.reached()
            raise KeyError("x")

    with pytest.raises(KeyError) as raised:
        await main()
    gate.opened.set()
    assert await tasks[0] == [7]
    trace = trace_of(raised.value)
    assert trace is not None
    assert trace.status == "failed"


@in_loop
async def test_calls_that_ended_in_time_are_not_told(store: MemoryStore, said: list[str]) -> None:
    with record("in time", store=store):
        await asyncio.create_task(look(1))
        task = asyncio.create_task(asyncio.sleep(_BESIDE))
    task.cancel()
    assert not list(said)


async def starts_and_returns() -> int:
    task: asyncio.Task[None] = asyncio.create_task(asyncio.sleep(_BESIDE))
    return await look(4 + 0 * len(task.get_name()))


def test_tasks_that_a_recorded_coroutine_leaves_behind_are_told(
    store: MemoryStore, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentloom.runtime.left_behind._SOON", 0)

    async def main() -> None:
        assert await record(starts_and_returns(), store=store) == 8
        await asyncio.sleep(0.001)

    asyncio.run(main())
    (line,) = said
    assert "of starts_and_returns cancelled what it had started and not awaited: sleep()" in line
    with record("around", store=store):
        asyncio.run(main())
    assert len(said) == 2


def test_they_are_not_told_where_the_loop_ends_as_well(store: MemoryStore, said: list[str]) -> None:
    assert asyncio.run(record(starts_and_returns(), store=store)) == 8
    assert not list(said)


def test_a_stream_of_a_block_outlives_a_recorded_coroutine_in_it(store: MemoryStore) -> None:
    gate.opened.set()

    async def main() -> Any:
        with record("around", store=store) as run:
            stream = open_inline(spec(), lambda _: parts_in_sync(gate))
            run.output = [next(stream), await record(look(1)), *stream]
        return run

    run = asyncio.run(main())
    assert run.trace.output == ["one", 2, "two"]
    with replaying(run.trace):
        assert asyncio.run(main()).report.verdict == "identical"


@pytest.mark.parametrize("fails", [False, True])
def test_a_daemon_of_sync_code_goes_on(store: MemoryStore, said: list[str], fails: bool) -> None:
    error = KeyError("late")

    @tool
    def slow() -> list[int]:
        gate.began.set()
        gate.opened.wait(_BESIDE)
        if fails:
            raise error
        sent.append(1)
        return [1]

    def main(store: Any = None) -> tuple[Any, threading.Thread, list[Any]]:
        seen: list[Any] = []

        def body() -> None:
            try:
                seen.append(slow())
            except (KeyError, NotRecorded) as raised:
                seen.append(raised)

        with record("daemon", store=store) as run:
            thread = threading.Thread(target=body, daemon=True)
            thread.start()
            look_in_sync(2)
            run.output = "done"
        return run, thread, seen

    run, thread, seen = main(store)
    assert run.trace.status == "completed"
    gate.opened.set()
    thread.join()
    assert seen == [error] if fails else [[1]]
    assert [call.status for call in run.trace.calls] == ["ok", None]
    assert len(said) == 1
    assert f"run {run.run_id} of daemon ended while tool slow" in next(iter(said))
    with replaying(run.trace):
        again, thread, seen = main()
        thread.join()
    assert again.report.verdict == "identical"
    assert type(seen[0]) is NotRecorded
    assert sent == ([] if fails else [1])


@tool(effect="read")
def look_in_sync(number: int) -> int:
    gate.began.wait(_BESIDE)
    return number
