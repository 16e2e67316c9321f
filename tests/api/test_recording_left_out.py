"""``AGENTLOOM=off``, and what sampling left out: the same code path, for real, with nothing held or written."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import record, sync, tool, wrap
from agentloom.errors import (
    NoActiveRun,
    NotRecorded,
    NotSupported,
)
from agentloom.store import MemoryStore
from agentloom.testing import Fails, FakeProvider, Says
from tests.api.recorded_programs import in_loop, look
from tests.docs.blocks import ROOT, blocks

instrument: Any = agentloom.instrument


@tool(effect="read")
def double(number: int) -> int:
    return number * 2


def squares(count: int) -> list[dict[str, int]]:
    return [{"id": number, "score": number * number} for number in range(count)]


async def squares_later(count: int) -> list[dict[str, int]]:
    return squares(count)


async def everything(url: str) -> dict[str, Any]:
    """Every async host function once; what each gave."""
    given: dict[str, Any] = {"model": "local/m", "base_url": f"{url}/v1", "api_key": "k"}
    chat: Any = {"base_url": url, "api_key": "k"}
    del given
    stream = await agentloom.model("openai/m", "Hi", stream=True, **chat)
    pieces = [piece async for piece in stream]
    left = await agentloom.model("openai/m", "Hi", stream=True, **chat)
    async with left:
        async for _ in left:
            break
    await agentloom.memory.put("left out", {"a": (1, 2)})
    await agentloom.note({"a": 1})
    await agentloom.flag("odd")
    await agentloom.sleep(0.001)
    return {
        "model": (await agentloom.model("openai/m", [{"role": "user", "content": "Hi"}], **chat)).text,
        "stream": (pieces, stream.answer.text),
        "output": (await agentloom.model("openai/m", "A number", output={"type": "object"}, **chat)).value,
        "retry": (await agentloom.model("openai/m", "Hi", retry=agentloom.Retry(2, delay=0), **chat)).text,
        "http": sorted(await agentloom.http("GET", f"{url}/models")),
        "now": await agentloom.now(),
        "random": await agentloom.random(),
        "uuid": await agentloom.uuid(),
        "env": await agentloom.env("SOME_VARIABLE", "none"),
        "memory": await agentloom.memory.get("left out"),
        "found": await agentloom.memory.search("left"),
        "step": await agentloom.step(squares, 2),
        "awaited step": await agentloom.step(squares_later, 2),
        "retrieve": await agentloom.retrieve(squares_later, 3),
        "tool": double(4),
        "async tool": await look(4),
        "parallel": await agentloom.parallel(look(1), look(2)),
        "retrying": await agentloom.retrying(2, look, 3),
        "render": agentloom.render(agentloom.Template("Dear {name}", name="t"), name="A"),
    }


def everything_sync(url: str) -> dict[str, Any]:
    """The same for ``agentloom.sync``."""
    chat: Any = {"base_url": url, "api_key": "k"}
    stream = sync.model("openai/m", "Hi", stream=True, **chat)
    pieces = list(stream)
    with sync.model("openai/m", "Hi", stream=True, **chat) as left:
        for _ in left:
            break
    sync.memory.put("left out", {"a": (1, 2)})
    sync.note({"a": 1})
    sync.flag("odd")
    sync.sleep(0.001)
    return {
        "model": sync.model("openai/m", [{"role": "user", "content": "Hi"}], **chat).text,
        "stream": (pieces, stream.answer.text),
        "output": sync.model("openai/m", "A number", output={"type": "object"}, **chat).value,
        "retry": sync.model("openai/m", "Hi", retry=agentloom.Retry(2, delay=0), **chat).text,
        "http": sorted(sync.http("GET", f"{url}/models")),
        "now": sync.now(),
        "random": sync.random(),
        "uuid": sync.uuid(),
        "env": sync.env("SOME_VARIABLE", "none"),
        "memory": sync.memory.get("left out"),
        "found": sync.memory.search("left"),
        "step": sync.step(squares, 2),
        "retrieve": sync.retrieve(squares, 3),
        "tool": double(4),
        "parallel": sync.parallel(lambda: double(1), lambda: double(2)),
        "retrying": sync.retrying(2, double, 3),
        "render": agentloom.render(agentloom.Template("Dear {name}", name="t"), name="A"),
    }


_OWN = {"now": dt.datetime, "random": float, "uuid": uuid.UUID}
"""What is another one each time, and its type."""


def check_same(recorded: dict[str, Any], plain: dict[str, Any]) -> None:
    assert recorded.keys() == plain.keys()
    for name, value in recorded.items():
        if name in _OWN:
            assert type(plain[name]) is type(value) is _OWN[name], name
        else:
            assert (plain[name], type(plain[name])) == (value, type(value)), name
    assert abs((plain["now"] - dt.datetime.now(dt.UTC)).total_seconds()) < 60
    assert plain["now"].tzinfo is dt.UTC


def says(seen: Any) -> Says:
    return Says('{"n": 7}' if "number" in str(seen.body["messages"]) else "one two three")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


class Bot:
    name = "bot"

    def __init__(self, work: Any) -> None:
        self.work = work

    async def run(self) -> Any:
        return await self.work()

    async def astream(self) -> AsyncIterator[Any]:
        yield await self.work()

    @asynccontextmanager
    async def run_stream(self) -> AsyncIterator[Any]:
        yield await self.work()


class SyncBot:
    name = "bot"

    def __init__(self, work: Any) -> None:
        self.work = work

    def invoke(self) -> Any:
        return self.work()

    def stream(self) -> Iterator[Any]:
        yield self.work()


async def by_block(work: Any, store: MemoryStore, **options: Any) -> Any:
    async with record("block", store=store):
        return await work()


async def by_run(work: Any, store: MemoryStore, **options: Any) -> Any:
    return await record(work(), store=store)


async def by_worker(work: Any, store: MemoryStore, **options: Any) -> Any:
    async def worker() -> Any:
        return await work()

    return await instrument(worker, store=store, **options)()


async def by_method(work: Any, store: MemoryStore, **options: Any) -> Any:
    return await wrap(Bot(work), store=store, **options).run()


async def by_stream(work: Any, store: MemoryStore, **options: Any) -> Any:
    (found,) = [item async for item in wrap(Bot(work), store=store, **options).astream()]
    return found


async def by_context(work: Any, store: MemoryStore, **options: Any) -> Any:
    async with wrap(Bot(work), store=store, **options).run_stream() as found:
        return found


async def by_request(work: Any, store: MemoryStore, **options: Any) -> Any:
    found: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(await work())

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    await instrument(app, store=store, **options)(scope, receive, send)
    return found[0]


ASYNC: dict[str, Any] = {
    "run": by_run, "block": by_block, "worker": by_worker, "method": by_method, "stream": by_stream,
    "context": by_context, "request": by_request,
}  # fmt: skip


def sync_block(work: Any, store: MemoryStore, **options: Any) -> Any:
    with record("block", store=store):
        return work()


def sync_worker(work: Any, store: MemoryStore, **options: Any) -> Any:
    return instrument(work, store=store, **options)()


def sync_method(work: Any, store: MemoryStore, **options: Any) -> Any:
    return wrap(SyncBot(work), store=store, **options).invoke()


def sync_stream(work: Any, store: MemoryStore, **options: Any) -> Any:
    return next(iter([*wrap(SyncBot(work), store=store, **options).stream()]))


SYNC: dict[str, Any] = {
    "block": sync_block, "worker": sync_worker, "method": sync_method, "stream": sync_stream
}  # fmt: skip
HOW = ("off", "not sampled")
CASES = [(way, how) for way in ASYNC for how in HOW if how == "off" or way not in ("run", "block")]
SYNC_CASES = [(way, how) for way in SYNC for how in HOW if how == "off" or way != "block"]


@pytest.fixture
def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    if request.param == "off":
        monkeypatch.setenv("AGENTLOOM", "off")
        return {}
    return {"rate": 0}


@pytest.mark.parametrize(("way", "options"), CASES, indirect=["options"])
def test_host_functions_are_performed_for_real(
    way: str, options: dict[str, Any], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProvider(says) as provider:
        left_out = asyncio.run(ASYNC[way](lambda: everything(provider.openai_url), store, **options))
        assert not store.runs()
        monkeypatch.delenv("AGENTLOOM", raising=False)
        recorded = asyncio.run(by_run(lambda: everything(provider.openai_url), store))
    assert len(store.runs()) == 1
    check_same(recorded, left_out)


@pytest.mark.parametrize(("way", "options"), SYNC_CASES, indirect=["options"])
def test_so_are_those_of_sync_code(
    way: str, options: dict[str, Any], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProvider(says) as provider:
        left_out = SYNC[way](lambda: everything_sync(provider.openai_url), store, **options)
        assert not store.runs()
        monkeypatch.delenv("AGENTLOOM", raising=False)
        recorded = sync_block(lambda: everything_sync(provider.openai_url), store)
    check_same(recorded, left_out)


def errors_of(work: Callable[[], Any]) -> tuple[type[BaseException], str]:
    with pytest.raises(Exception) as raised:
        work()
    return type(raised.value), str(raised.value)


def bad(number: int) -> Any:
    raise KeyError(number)


@agentloom.agent
def agent_of_its_own() -> int:
    return 1


WRONG: dict[str, Callable[[str], Any]] = {
    "request": lambda _: sync.step(squares, object()),
    "result": lambda _: sync.step(object),
    "step": lambda _: sync.step(bad, 3),
    "async step": lambda _: sync.step(squares_later, 3),
    "secret": lambda _: sync.env("API_KEY"),
    "note": lambda _: sync.note(object()),
    "flag": lambda _: sync.flag(object()),  # type: ignore[arg-type]
    "parallel": lambda _: sync.parallel(lambda: bad(1), lambda: bad(2)),
    "not callable": lambda _: sync.parallel(3),  # type: ignore[arg-type]
    "template": lambda _: agentloom.render(agentloom.Template("{a}", name="t"), b=1),
    "model": lambda url: sync.model("openai/m", "Hi", base_url=url, api_key="k"),
    "message": lambda url: sync.model("openai/m", [{"role": object()}], base_url=url, api_key="k"),
    "retried": lambda url: sync.retrying(agentloom.Retry(2, delay=0, on=KeyError), bad, 4),
    "run": lambda _: agent_of_its_own.run(),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_the_same(what: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def main() -> Any:
        with FakeProvider([Fails(400)] * 3) as provider, record("wrong", store=store):
            kind, text = errors_of(lambda: WRONG[what](provider.openai_url))
            return kind, text.replace(provider.openai_url, "URL")

    recorded = main()
    monkeypatch.setenv("AGENTLOOM", "off")
    left_out = main()
    assert left_out[0] is recorded[0]
    if what != "run":
        assert left_out[1] == recorded[1]
    assert len(store.runs()) == 1


def test_outside_of_everything_they_are_refused_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM", "off")
    with record("over"):
        assert sync.random() < 1
    for call in (sync.now, sync.random, lambda: sync.flag("x"), lambda: sync.parallel(lambda: 1)):
        with pytest.raises(NoActiveRun):
            call()


def test_threads_of_sync_code_are_part_of_it(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def main() -> list[Any]:
        with ThreadPoolExecutor(2) as pool:
            found: list[Any] = [pool.submit(sync.random).result(timeout=30), *pool.map(double, (1, 2))]
        thread = threading.Thread(target=lambda: found.append(sync.now()))
        thread.start()
        thread.join()
        return found

    assert len(sync_worker(main, store)) == 4
    assert len(sync_worker(main, store, rate=0)) == 4
    monkeypatch.setenv("AGENTLOOM", "off")
    assert len(sync_worker(main, store)) == 4
    assert len(store.runs()) == 1


@pytest.mark.parametrize(("way", "options"), CASES, indirect=["options"])
@in_loop
async def test_what_it_would_record_inside_belongs_to_it(
    way: str, options: dict[str, Any], store: MemoryStore
) -> None:
    inner = MemoryStore()

    async def work() -> list[Any]:
        run = record(look(1), store=inner)
        found = [await run]
        with record("block", store=inner) as block:
            found.append(double(2))
        found.append(await wrap(Bot(lambda: look(3)), store=inner).run())
        found += [item async for item in wrap(Bot(lambda: look(4)), store=inner).astream()]
        found.append(await by_context(lambda: look(5), inner))
        found.append(await by_worker(lambda: look(6), inner))
        found.append(await asyncio.to_thread(sync_worker, lambda: double(7), inner))
        found += await asyncio.gather(record(look(8), store=inner), asyncio.create_task(look(9)))
        for handle in (run, block):
            assert not handle.recorded
            assert handle.run_id is None
            why = "AGENTLOOM=off" if not options else "sampling left it out"
            with pytest.raises(NotRecorded, match=why):
                _ = handle.trace
        with pytest.raises(NotSupported, match="part of a run"):
            await agent_of_its_own.arun(store=inner)
        return found

    assert await ASYNC[way](work, store, **options) == [number * 2 for number in range(1, 10)]
    assert not store.runs()
    assert not inner.runs()


@in_loop
async def test_what_outlives_it_is_on_its_own(store: MemoryStore) -> None:
    go = asyncio.Event()

    async def later() -> int:
        await go.wait()
        with pytest.raises(NoActiveRun):
            await agentloom.now()
        return await record(look(1), store=store)

    async def work() -> Any:
        return asyncio.create_task(later())

    task = await by_worker(work, store, rate=0)
    go.set()
    assert await task == 2
    assert len(store.runs()) == 1


@in_loop
async def test_readers_of_streams_and_generators_are_no_part_of_it(store: MemoryStore) -> None:
    async for _ in wrap(Bot(lambda: look(1)), store=store, rate=0).astream():
        with pytest.raises(NoActiveRun):
            await agentloom.now()
        await record(look(1), store=store)
    for _ in wrap(SyncBot(lambda: double(1)), store=store, rate=0).stream():
        with pytest.raises(NoActiveRun):
            sync.now()
    assert len(store.runs()) == 1


class Echo:
    name = "echo"

    def __init__(self) -> None:
        self.said: list[Any] = []

    def stream(self) -> Any:
        try:
            self.said.append((yield sync.random()))
            yield 2
        except ValueError as error:
            self.said.append(str(error))
            yield 3
        finally:
            self.said.append("closed")
        return "returned"

    async def astream(self) -> Any:
        try:
            self.said.append((yield await agentloom.random()))
            yield 2
        except ValueError as error:
            self.said.append(str(error))
            yield 3
        finally:
            self.said.append("closed")


@in_loop
async def test_generators_that_are_left_alone_are_generators(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = Echo()
    for options in ({"rate": 0}, {}):
        made: Any = wrap(echo, store=store, **options)  # type: ignore[arg-type]
        stream = made.stream()
        next(stream)
        assert stream.send("a") == 2
        assert stream.throw(ValueError("b")) == 3
        with pytest.raises(StopIteration) as stopped:
            next(stream)
        assert stopped.value.value == "returned"
        again = made.astream()
        await anext(again)
        assert await again.asend("c") == 2
        assert await again.athrow(ValueError("d")) == 3
        await again.aclose()
        assert echo.said == ["a", "b", "closed", "c", "d", "closed"]
        echo.said.clear()
        monkeypatch.setenv("AGENTLOOM", "off")
    assert not store.runs()


def test_a_workflow_inside_is_run_and_nothing_of_it_is_kept(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = agentloom.Workflow()
    graph.step("draw", fn=lambda state: 7)

    async def main() -> Any:
        return await graph("x")

    recorded = asyncio.run(by_run(main, store))
    monkeypatch.setenv("AGENTLOOM", "off")
    assert asyncio.run(by_run(main, store)) == recorded
    assert len(store.runs()) == 1


def test_everything_is_replayed_whatever_the_rate(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay never becomes a live run: sampling is for recording."""
    performed: list[int] = []

    @tool
    def act() -> int:
        performed.append(1)
        return 1

    def main(rate: float) -> None:
        for kept in (True, False):
            assert sync_worker(act, store, rate=1 if kept else rate, name="job") == 1

    main(1)
    monkeypatch.setenv("AGENTLOOM", "replay")
    main(0)
    assert len(performed) == 2


@in_loop
async def test_a_replay_in_what_is_left_out_is_one_and_in_a_run_it_is_refused(store: MemoryStore) -> None:
    performed: list[int] = []

    @tool
    def act() -> int:
        performed.append(1)
        return 1

    async def work() -> int:
        return act()

    def block() -> int:
        with record("block", store=store) as run:
            run.output = act()
        return 1

    @agentloom.agent
    def own() -> int:
        return act()

    traces: list[agentloom.Trace] = []
    for make in (
        lambda: record(work(), store=store),
        lambda: by_method(work, store),
        lambda: sync_as_async(block),
    ):
        await make()
        traces.append(agentloom.Trace(store.read(store.resolve("last"))))
    traces.append(own.run(store=store))
    before = len(performed)

    async def again() -> list[Any]:
        found: list[Any] = []
        with agentloom.replaying(*traces):
            found += [await record(work()), await wrap(Bot(work)).run(), block(), own.run().output]
        found.append(traces[2].replay(call=act).verdict)
        return found

    assert await by_worker(again, store, rate=0) == [1, 1, 1, 1, "identical"]
    with pytest.raises(NotSupported, match="inside a run"):
        await record(again(), store=MemoryStore())
    assert len(performed) == before


async def sync_as_async(function: Callable[[], Any]) -> Any:
    return function()


def test_the_program_of_the_guide_works_when_off(tmp_path: Path) -> None:
    (program,) = [
        block for block in blocks(ROOT / "docs" / "recording.md") if block.marks.get("file") == "support.py"
    ]
    (tmp_path / "support.py").write_text(program.text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTLOOM")}
    said: list[str] = []
    for mode in ("record", "off", "replay"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "support.py"],
            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, env=kept | {"AGENTLOOM": mode},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[2] == "42\ncompleted 2 identical\n"
    assert said[1] == "42\n"
