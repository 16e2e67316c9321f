"""``with record("name")``: a run of code that stays where it is, on a stock loop, in sync code, in threads."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

import agentloom
from agentloom import DivergenceError, Trace, agent, record, replaying, tool, trace_of
from agentloom.errors import NotSupported, TargetError
from agentloom.runtime.boundary import open_async
from agentloom.runtime.calls import CallSpec
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says
from tests.api import recorded_programs as programs
from tests.api.recorded_programs import in_loop, look


@tool(effect="read")
def double(number: int) -> int:
    return number * 2


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def gaps(trace: Trace) -> list[Any]:
    return [entry["why"] for entry in trace.journal.entries if entry["kind"] == "gap"]


@in_loop
async def test_a_sequential_block_replays_through_the_same_code(store: MemoryStore) -> None:
    async def main(first: int, where: Any = None) -> Any:
        with record("block", store=where) as run:
            one = await look(first)
            two = double(one)
            run.output = [two, await agentloom.now()]
            with pytest.raises(TargetError, match="has not ended"):
                _ = run.trace
        return run

    run = await main(2, store)
    assert run.trace.output[0] == 8
    assert [call.id for call in run.trace.calls] == [f"root/block#{number}" for number in (1, 2, 3)]
    assert not gaps(run.trace)
    with replaying(run.trace):
        again = await main(2)
    assert again.report.verdict == "identical"
    assert again.output == run.trace.output
    with replaying(run.trace), pytest.raises(DivergenceError, match="args.number"):
        await main(3)
    assert len(store.runs()) == 1


def test_sync_code_and_a_loop_that_it_starts(store: MemoryStore) -> None:
    def main() -> Any:
        with record("sync", store=store) as run:
            run.output = double(asyncio.run(look(double(1))))
        return run

    run = main()
    assert run.trace.output == 8
    with replaying(run.trace):
        assert main().report.verdict == "identical"
    assert run.trace.replay(call=lambda: double(asyncio.run(look(double(1))))).verdict == "identical"


async def awaits() -> int:
    return await look(await look(1))


def test_the_trace_of_a_block_replays_by_a_call(store: MemoryStore) -> None:
    async def main() -> Trace:
        async with record("b", store=store) as run:
            run.output = await awaits()
        with pytest.raises(NotSupported, match="loop is running"):
            run.trace.replay(call=awaits)
        return run.trace

    trace = asyncio.run(main())
    assert trace.replay(call=awaits).verdict == "identical"
    assert trace.replay(call=lambda: 1, check=False).verdict == "diverged"
    with pytest.raises(TargetError, match="it is a block of code"):
        trace.replay()


@in_loop
async def test_calls_that_overlap_are_marked_and_told(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def one(number: int) -> int:
        return await look(number)

    with caplog.at_level(logging.WARNING, "agentloom.recording"), record("par", store=store) as run:
        assert list(await asyncio.gather(one(1), one(2), one(3))) == [2, 4, 6]
    assert gaps(run.trace) == ["stock-loop"]
    assert len(caplog.records) == 1
    said = caplog.records[0].getMessage()
    assert f"run {run.run_id} of par is not replayable past tests/api/test_recording_block.py:" in said
    assert "await agentloom.record(...)" in said
    assert not run.trace.verify().complete


@in_loop
async def test_a_recorded_coroutine_in_a_block_is_deterministic(store: MemoryStore) -> None:
    async def main() -> Any:
        with record("outer", store=store) as run:
            before = await look(1)
            answer = await record(programs.research(5))
            run.output = [before, answer.text, answer.total, await asyncio.to_thread(double, 4)]
        return run

    run = await main()
    assert not gaps(run.trace)
    assert len(run.trace.calls) == 7
    for _ in range(10):
        with replaying(run.trace):
            again = await main()
        assert again.output == run.trace.output
    assert len(store.runs()) == 1


@in_loop
async def test_two_recorded_coroutines_at_once_in_a_block_are_marked(store: MemoryStore) -> None:
    with record("outer", store=store) as run:
        answers = await asyncio.gather(record(programs.research(3)), record(programs.research(2)))
    assert [answer.total for answer in answers] == [6, 2]
    assert len(run.trace.calls) == 5
    assert gaps(run.trace) == ["stock-loop"]


@in_loop
async def test_an_sdk_on_a_stock_loop_streamed_left_early_and_failing(store: MemoryStore) -> None:
    async def main(url: str) -> Any:
        client = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0)
        said: list[Any] = []
        async with record("sdk", store=store) as run:
            messages: list[Any] = [{"role": "user", "content": "Hi"}]
            reply = await client.chat.completions.create(model="m", messages=messages)
            said.append(reply.choices[0].message.content)
            stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
            said.append(
                "".join([part.choices[0].delta.content or "" async for part in stream if part.choices])
            )
            async with await client.chat.completions.create(
                model="m", messages=messages, stream=True
            ) as left:
                async for part in left:
                    said.append(part.choices[0].delta.content)
                    break
            with pytest.raises(openai.InternalServerError) as failed:
                await client.chat.completions.create(model="m", messages=messages)
            run.output = [*said, failed.value.status_code]
        await client.close()
        return run

    with FakeProvider([Says("one"), Says("two two"), Says("three three")]) as provider:
        run = await main(provider.openai_url)
        url = provider.openai_url
    assert run.trace.output[:2] == ["one", "two two"]
    assert [call.status for call in run.trace.calls] == ["ok", "ok", "closed", "ok"]
    assert not gaps(run.trace)
    with replaying(run.trace):
        again = await main(url)  # the provider is gone
    assert again.report.verdict == "identical"


@in_loop
async def test_a_cancelled_call_is_marked(store: MemoryStore) -> None:
    with record("cut", store=store) as run:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await agentloom.sleep(30)
        run.output = await look(1)
    assert run.trace.calls[0].status == "cancelled"
    assert gaps(run.trace) == ["stock-loop"]


@in_loop
async def test_cancelling_the_block_ends_the_run_as_cancelled(store: MemoryStore) -> None:
    began = asyncio.Event()
    runs: list[Any] = []

    async def main() -> None:
        async with record("cut", store=store) as run:
            runs.append(run)
            began.set()
            await agentloom.sleep(30)

    task = asyncio.create_task(main())
    await began.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runs[0].trace.status == "cancelled"


def test_errors_are_raised_as_they_are_and_replay(store: MemoryStore) -> None:
    def main(where: Any) -> None:
        with record("bad", store=where):
            double(1)
            raise KeyError("gone")

    with pytest.raises(KeyError) as raised:
        main(store)
    trace = trace_of(raised.value)
    assert trace.status == "failed"
    with replaying(trace), pytest.raises(KeyError, match="gone"):
        main(None)


def test_what_the_code_swallows_is_still_a_divergence(store: MemoryStore) -> None:
    def main(number: int) -> None:
        with record("swallows", store=store):
            try:  # noqa: SIM105
                double(number)
            except BaseException:  # noqa: BLE001
                pass

    main(1)
    with (
        replaying(store.resolve("last") and Trace(store.read(store.resolve("last")))),
        pytest.raises(DivergenceError),
    ):
        main(2)


def test_threads_of_a_block_carry_the_run(store: MemoryStore) -> None:
    import contextvars

    with record("threads", store=store) as run:
        found: list[int] = []
        for number in range(8):
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(lambda n=number: found.append(double(n)),))
            thread.start()
            thread.join()
    assert found == [2 * number for number in range(8)]
    assert len(run.trace.calls) == 8
    assert not gaps(run.trace)


def test_threads_and_pools_that_sync_code_starts_are_adopted(store: MemoryStore) -> None:
    def main() -> Any:
        with record("pool", store=store) as run:
            with ThreadPoolExecutor(3) as pool:
                found = list(pool.map(double, range(9)))
            thread = threading.Thread(target=lambda: found.append(double(100)))
            thread.start()
            thread.join()
            run.output = found
        return run

    run = main()
    assert run.trace.output == [*range(0, 18, 2), 200]
    assert len(run.trace.calls) == 10
    assert not gaps(run.trace)
    for _ in range(5):
        with replaying(run.trace):
            assert main().report.verdict == "identical"


def test_blocks_in_runs_are_parts_and_blocks_are_entered_once(store: MemoryStore) -> None:
    @agent
    def outer() -> int:
        with record("inner", store=store) as run:
            value = double(2)
        with pytest.raises(TargetError, match="is part of run"):
            _ = run.trace
        return value

    trace = outer.run(store=store)
    assert [call.path for call in trace.calls] == ["root/outer/inner[0]"]
    with record("once", store=store) as run, record("within") as within:
        double(1)
    assert within.run_id is None
    with pytest.raises(NotSupported, match="entered before"), run:
        pass
    assert len(store.runs()) == 2


def test_off_costs_a_look_at_the_environment(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM", "off")
    with record("off", store=store) as run:
        assert double(2) == 4
    assert run.run_id is None
    assert not store.runs()
    monkeypatch.setenv("AGENTLOOM", "replay")
    began: list[int] = []
    with pytest.raises(TargetError, match="no run of off"), record("off", store=store):
        began.append(1)
    assert not began


@in_loop
async def test_a_generator_that_is_left_ends_its_block(store: MemoryStore) -> None:
    async def numbers() -> AsyncIterator[int]:
        async with record("generator", store=store):
            for number in range(3):
                yield await look(number)

    generator = numbers()
    assert await anext(generator) == 0
    await generator.aclose()  # type: ignore[attr-defined]
    assert Trace(store.read(store.resolve("last"))).status == "cancelled"


def test_host_calls_of_many_blocks_on_one_loop_do_not_cross(store: MemoryStore) -> None:
    async def one(number: int) -> Any:
        async with record(f"block {number}", store=store) as run:
            total = 0
            for step in range(number):
                total += await look(step)
            run.output = total
        return run

    async def main() -> list[Any]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    for number, run in enumerate(asyncio.run(main())):
        assert len(run.trace.calls) == number
        assert run.trace.output == number * (number - 1)
        assert not gaps(run.trace)


PROGRAM = """
import asyncio, sys, httpx2, agentloom

async def main(url):
    async with httpx2.AsyncClient() as client:
        with agentloom.record("fetch", tags={"ticket": "7"}) as run:
            first = await client.get(url + "/a")
            run.output = first.status_code
            print(first.status_code, (await client.get(url + "/b")).status_code)

asyncio.run(main(sys.argv[1]))
"""


def test_a_program_replays_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(url: str, **more: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTLOOM")}
        return subprocess.run(
            [sys.executable, "-W", "error", "program.py", url],
            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, env=kept | more,
        )  # fmt: skip

    with FakeProvider() as provider:
        url = provider.openai_url
        first = run(url, PYTHONHASHSEED="1")
    assert first.returncode == 0, first.stderr
    again = run(url, PYTHONHASHSEED="2", AGENTLOOM="replay")
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr
    for wrong in ({"AGENTLOOM": "replai"}, {"AGENTLOOM": "replay", "AGENTLOOM_TRACE": "gone.loom"}):
        refused = run(url, **wrong)
        assert refused.returncode == 1
        assert "TargetError" in refused.stderr
        assert not refused.stdout
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "replay", "last"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is of a block of code" in done.stderr


ran: list[int] = []


@tool
def note_down(number: int) -> int:
    ran.append(number)
    return number * 3


def doubled(number: int) -> int:
    return note_down(number) * 2


@in_loop
async def test_threads_and_pools_of_an_async_block_carry_the_run(store: MemoryStore) -> None:
    """A pool from before the run too, and without copying the context: as bare code has it."""
    pool = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()

    async def main(where: Any = None) -> Any:
        seen: list[int] = []
        with record("threads", store=where) as run:
            seen.append(await loop.run_in_executor(pool, doubled, 1))
            seen.append(await loop.run_in_executor(None, note_down, 2))
            seen.append(await asyncio.wrap_future(pool.submit(lambda: doubled(3))))
            seen.extend(await asyncio.to_thread(lambda: list(pool.map(doubled, [4]))))
            thread = threading.Thread(target=lambda: seen.append(doubled(5)))
            thread.start()
            await asyncio.to_thread(thread.join)
            run.output = list(seen)
        return run

    with pool:
        assert pool.submit(note_down, 0).result() == 0  # the thread of the pool is older than the run
        ran.clear()
        run = await main(store)
        assert run.trace.output == [6, 6, 18, 24, 30]
        assert [call.request["args"]["number"] for call in run.trace.calls] == [1, 2, 3, 4, 5]
        assert not gaps(run.trace)
        with replaying(run.trace):
            assert (await main()).report.verdict == "identical"
        assert ran == [1, 2, 3, 4, 5]
        assert pool.submit(note_down, 6).result() == 18  # what comes after the run is none of it
    assert len(run.trace.calls) == 5


async def numbers(went: asyncio.Event) -> AsyncIterator[object]:
    for number in range(3):
        yield number
    went.set()


@in_loop
async def test_a_stream_that_one_task_reads_and_a_call_that_another_makes(store: MemoryStore) -> None:
    """All chunks are there when the first is asked for: nobody waits, and nothing is marked."""

    async def main(where: Any = None) -> Any:
        went, asked = asyncio.Event(), asyncio.Event()
        seen: list[Any] = []

        async def reads() -> None:
            stream = open_async(CallSpec("http", "stream", {}, stream=True), lambda _: numbers(went))
            if where is not None:
                await went.wait()
            asked.set()
            seen.extend([part async for part in stream])

        async def calls() -> None:
            await asked.wait()
            seen.append(await look(5))

        with record("both", store=where) as run:
            await asyncio.gather(reads(), calls())
            run.output = seen
        return run

    run = await main(store)
    assert not gaps(run.trace)
    assert sorted(run.trace.output) == [0, 1, 2, 10]
    for _ in range(5):
        with replaying(run.trace):
            assert (await main()).report.verdict == "identical"


@in_loop
async def test_calls_that_overlapped_are_replayed_in_their_order_where_that_can_be(
    store: MemoryStore,
) -> None:
    async def main(where: Any = None) -> Any:
        seen: list[int] = []

        async def one(number: int) -> None:
            seen.extend([await look(number + step) for step in range(3)])

        with record("overlap", store=where) as run:
            await asyncio.gather(*(one(number) for number in (10, 20, 30)))
            run.output = seen
        return run

    run = await main(store)
    assert gaps(run.trace) == ["stock-loop"]
    with replaying(run.trace), pytest.raises(DivergenceError):  # told soon, where others do not do their part
        async with record("overlap"):
            await asyncio.gather(look(10), look(21))
