"""``record(coro)``: the coroutine runs unchanged, and its run replays."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import subprocess
import sys
from typing import Any

import httpx2
import openai
import pytest

import agentloom
from agentloom import Trace, agent, record, replaying, trace_of
from agentloom.errors import DivergenceError, TargetError, ValueRefused
from agentloom.runtime.scope import current
from agentloom.store import MemoryStore, Store
from tests.api import recorded_programs as programs
from tests.api.recorded_programs import in_loop, look


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@in_loop
async def test_the_result_is_the_coroutines_own_and_the_run_replays(store: MemoryStore) -> None:
    run = record(programs.research(4, 10, flag=True, why="x"), store=store, tags={"ticket": "7"}, seed=3)
    answer = await run
    assert type(answer) is programs.Answer
    assert answer.total == 22
    trace = run.trace
    assert trace.run_id == run.run_id
    assert trace.input == {"args": [4, 10], "kwargs": {"flag": True, "why": "x"}}
    assert trace.output == {"text": answer.text, "total": 22}
    assert trace.tags == {"ticket": "7"}
    assert trace.name == "research"
    assert trace.replay().verdict == "identical"
    assert Trace(store.read(trace.run_id)).replay().verdict == "identical"  # as one read from a file


@in_loop
async def test_the_coroutine_gets_the_very_objects_it_was_called_with(store: MemoryStore) -> None:
    thing = programs.Thing()
    run = record(programs.passed_on(thing), store=store)
    assert await run is thing
    assert run.trace.output is None
    with pytest.raises(TargetError, match=r"passed_on was given thing .*programs\.Thing"):
        run.trace.replay()
    report = run.trace.replay(call=lambda: programs.passed_on(thing))
    assert report.verdict == "identical"
    assert report.compared == ()
    assert any("output is not in the trace" in note for note in report.notes)


@in_loop
async def test_a_method_replays_by_a_call_that_is_given(store: MemoryStore) -> None:
    run = record(programs.Thing().ask(3), store=store, name="thing")
    await run
    assert run.trace.name == "thing"
    assert run.trace.replay(call=lambda: programs.Thing().ask(3)).verdict == "identical"
    with pytest.raises(DivergenceError):
        run.trace.replay(call=lambda: programs.Thing().ask(4))
    with pytest.raises(TargetError, match="agent= and call="):
        run.trace.replay(agent=programs.research, call=lambda: programs.Thing().ask(3))


@in_loop
async def test_a_decorated_function_is_found_under_its_wrapper(store: MemoryStore) -> None:
    run = record(programs.under_a_wrapper(2), store=store)
    assert await run == 4
    assert run.trace.replay(call=lambda: programs.under_a_wrapper(2)).verdict == "identical"


@agent
async def an_agent(number: int) -> int:
    return await programs.look(number)


@in_loop
async def test_an_agent_that_is_called_is_found_too(store: MemoryStore) -> None:
    run = record(an_agent(2), store=store)
    assert await run == 4
    assert run.trace.replay().verdict == "identical"


@in_loop
async def test_exceptions_are_raised_as_they_are(store: MemoryStore) -> None:
    run = record(programs.fails(5), store=store)
    with pytest.raises(KeyError) as raised:
        await run
    assert raised.value.args == ("gone",)
    assert type(raised.value.__cause__) is ValueError
    trace = trace_of(raised.value)
    assert trace.run_id == run.run_id
    assert trace.status == run.trace.status == "failed"
    assert trace.replay().verdict == "identical"


@in_loop
async def test_cancelling_the_caller_cancels_the_run(store: MemoryStore) -> None:
    forever = asyncio.Event()

    async def waits() -> None:
        await agentloom.sleep(3600)

    run = record(waits(), store=store)
    task: asyncio.Task[Any] = asyncio.ensure_future(run)
    asyncio.get_running_loop().call_later(0.01, forever.set)
    await forever.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.trace.status == "cancelled"


@in_loop
async def test_runs_side_by_side_do_not_cross(store: MemoryStore) -> None:
    runs = [record(programs.research(number), store=store) for number in range(20)]
    answers = await asyncio.gather(*runs)
    assert [answer.total for answer in answers] == [number * (number - 1) for number in range(20)]
    for number, run in enumerate(runs):
        assert len(run.trace.calls) == number
        assert run.trace.replay().verdict == "identical"


def test_the_handle_is_a_coroutine(store: MemoryStore) -> None:
    run = record(programs.research(2), store=store)
    assert asyncio.iscoroutine(run)
    assert not inspect.isawaitable(run.trace) if run.run_id else True
    assert asyncio.run(run).total == 2
    assert run.trace.status == "completed"


def test_a_handle_that_is_dropped_warns_as_a_coroutine_does(store: MemoryStore) -> None:
    with pytest.warns(RuntimeWarning, match="coroutine 'research' was never awaited"):  # noqa: PT031
        record(programs.research(1), store=store)
        gc.collect()
    assert not store.runs()


def test_a_handle_can_be_closed(store: MemoryStore) -> None:
    run = record(programs.research(1), store=store)
    run.close()
    with pytest.raises(TargetError, match="has not ended"):
        _ = run.trace


@in_loop
async def test_in_a_run_it_is_a_part_of_that_run(store: MemoryStore) -> None:
    @agent
    async def outer() -> int:
        inner = record(programs.research(3), store=store)
        answer = await inner
        with pytest.raises(TargetError, match="is part of run"):
            _ = inner.trace
        return answer.total

    trace = await outer.arun(store=store)
    assert trace.output == 6
    assert {call.path.split("/")[2] for call in trace.calls} == {"research[0]"}
    assert trace.replay().verdict == "identical"
    assert len(store.runs()) == 1


@pytest.mark.parametrize("wrong", [3, None, [], lambda: 1])
def test_what_it_takes(wrong: Any, store: Store) -> None:
    with pytest.raises(TypeError, match=r"record\(\) takes a coroutine"):
        record(wrong, store=store)


@in_loop
async def test_a_coroutine_that_has_begun_is_refused(store: MemoryStore) -> None:
    coroutine = programs.research(1)
    task = asyncio.ensure_future(coroutine)
    await task
    with pytest.raises(TargetError, match="has begun or ended"):
        record(coroutine, store=store)


@in_loop
async def test_what_is_wrong_with_the_options_is_said_before_it_runs(store: MemoryStore) -> None:
    began: list[int] = []

    async def main() -> None:
        began.append(1)

    with pytest.raises(ValueRefused):
        await record(main(), store=store, seed="x")  # type: ignore[call-overload]
    with pytest.raises(ValueRefused):
        await record(main(), store=store, guard="no")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="name"):
        record(programs.plain_look(1), name=" ", store=store).close()
    assert not began
    assert not store.runs()


# -- context variables -------------------------------------------------------------------------------------------------

here: contextvars.ContextVar[str] = contextvars.ContextVar("here", default="nothing")
there: contextvars.ContextVar[list[int]] = contextvars.ContextVar("there")


async def sets(number: int, *, fails: bool = False) -> str:
    before = here.get()
    here.set(f"set {await look(number)}")
    there.set([number])

    async def in_a_task() -> None:
        here.set("of a task")

    await asyncio.gather(in_a_task())
    if fails:
        raise KeyError(number)
    return before


@in_loop
async def test_what_the_code_sets_in_its_context_reaches_its_caller() -> None:
    store = MemoryStore()
    here.set("before")
    assert await record(sets(1), store=store) == "before"
    assert (here.get(), there.get()) == ("set 2", [1])
    here.set("before")
    with replaying(Trace(store.read(store.resolve("last")))):
        assert await record(sets(1)) == "before"
    assert here.get() == "set 2"
    with pytest.raises(KeyError):
        await record(sets(2, fails=True), store=store)
    assert here.get() == "set 4"
    with record("block", store=store):
        await record(sets(3))
        assert here.get() == "set 6"
    assert here.get() == "set 6"
    assert current() is None
    task = asyncio.create_task(record(sets(4), store=store))
    assert await task == "set 6"
    assert here.get() == "set 6"  # a task keeps what it sets, recorded or not


def test_so_does_what_a_function_sets() -> None:
    @agentloom.instrument(store=MemoryStore())
    def sync() -> None:
        here.set("sync")

    def main() -> str:
        sync()
        return here.get()

    assert contextvars.copy_context().run(main) == "sync"


# -- runs that are not kept --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_an_error_names_its_run_only_where_that_is_kept(kept: bool) -> None:
    store = MemoryStore()

    def keep(_: Trace) -> bool:
        return kept

    async def coroutine() -> None:
        await record(programs.fails(1), store=store, keep=keep)

    def block() -> None:
        with record("block", store=store, keep=keep):
            raise KeyError("gone")

    @agentloom.instrument(store=store, keep=keep)
    def function() -> None:
        raise KeyError("gone")

    def awaited() -> None:
        asyncio.run(coroutine())

    for work in (awaited, block, function):
        with pytest.raises(KeyError) as raised:
            work()
        notes = [note for note in getattr(raised.value, "__notes__", []) if "recorded as run" in note]
        assert len(notes) == kept
        if kept:
            assert trace_of(raised.value).status == "failed"
    assert len(store.runs()) == 3 * kept


# -- errors ------------------------------------------------------------------------------------------------------------


class OutOfOrder(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"out of order: {code}")
        self.code = code


@pytest.mark.parametrize("way", ["bare", "coroutine", "block", "sync"])
def test_the_error_of_a_transport_of_the_users_own_is_that_object(way: str) -> None:
    error, refused = OutOfOrder(7), httpx2.ConnectError("refused")

    def handle(request: httpx2.Request) -> httpx2.Response:
        raise refused if request.url.path.startswith("/refused") else error

    async def asks() -> list[bool]:
        transport = httpx2.MockTransport(handle)
        found: list[bool] = []
        async with httpx2.AsyncClient(transport=transport) as http:
            with pytest.raises(OutOfOrder) as raised:
                await http.get("http://somewhere/")
            found.append(raised.value is error)
            client = openai.AsyncOpenAI(
                base_url="http://somewhere/refused", api_key="k", max_retries=0, http_client=http
            )
            with pytest.raises(openai.APIConnectionError) as failed:
                await client.models.list()
            found.append(failed.value.__cause__ is refused)
            with pytest.raises(openai.APIConnectionError) as failed:
                await client.chat.completions.create(model="m", messages=[], stream=True)
            found.append(failed.value.__cause__ is refused)
        return found

    def asks_in_sync() -> list[bool]:
        with httpx2.Client(transport=httpx2.MockTransport(handle)) as http:
            with pytest.raises(OutOfOrder) as raised:
                http.get("http://somewhere/")
            return [raised.value is error]

    async def in_a_block() -> list[bool]:
        with record("block", store=MemoryStore()):
            return await asks()

    if way == "sync":
        with record("block", store=MemoryStore()):
            assert asks_in_sync() == [True]
    elif way == "coroutine":
        assert asyncio.run(record(asks(), store=MemoryStore())) == [True] * 3
    else:
        assert asyncio.run(in_a_block() if way == "block" else asks()) == [True] * 3


@pytest.mark.parametrize("name", ["record", "instrument", "wrap"])
def test_who_records_does_not_load_what_replays(name: str) -> None:
    program = f"""
import sys, asyncio, agentloom
from agentloom.store import MemoryStore
agentloom.{name}

async def main():
    async def work():
        return await agentloom.now()

    await agentloom.record(work(), store=MemoryStore())
    with agentloom.record("block", store=MemoryStore()):
        await agentloom.now()

asyncio.run(main())
print(sorted(module for module in sys.modules if module.startswith("agentloom.replay")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
