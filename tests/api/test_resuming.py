"""A run whose process has ended goes on in another: from its trace as far as that reaches, live from there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

import agentloom
import agentloom.sync
from agentloom import Agent, DivergenceError, Suspended, Trace, agent, aresume, idempotency_key, resume, tool
from agentloom.errors import Expired, Interrupted, LeaseHeld, NotSupported, TargetError
from agentloom.format.values import Tree
from agentloom.runtime.boundary import call_async, call_inline, open_async, open_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.outside import Outside
from agentloom.runtime.waits import Waits
from agentloom.store import MemoryStore
from agentloom.store.mail import Mail

DONE: list[object] = []
KEYS: list[str] = []
FAILS: list[bool] = []


class Died(BaseException):
    """Stands for the death of the process: nothing more is written."""


@pytest.fixture(autouse=True)
def fresh() -> None:
    DONE.clear()
    KEYS.clear()
    FAILS.clear()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@tool
async def charge(number: int) -> int:
    DONE.append(number)
    return number


@tool
def pay(number: int) -> int:
    DONE.append(number)
    return number


@tool(effect="read")
async def look(number: int) -> int:
    DONE.append(number)
    return number


@tool(idempotent=True)
async def book(number: int) -> int:
    DONE.append(number)
    KEYS.append(idempotency_key())
    return number


@tool
async def flaky(number: int) -> int:
    DONE.append(number)
    if FAILS and FAILS.pop():
        raise ConnectionError("down")
    return number


def question(text: str, **more: Any) -> CallSpec:
    facts = {"question": text}
    return CallSpec("ask", "ask", {"question": text}, outside=Outside("answer", facts=facts, **more))


async def never(_: object) -> object:
    raise AssertionError("an outside wait was performed")


async def asked(text: str, **more: Any) -> Any:
    return await call_async(question(text, **more), never)


def asked_sync(text: str, **more: Any) -> Any:
    return call_inline(question(text, **more), lambda _: pytest.fail("an outside wait was performed"))


@agent
async def refund(number: int) -> str:
    await charge(number)
    while await asked("refund?") != "yes":
        pass
    await charge(number + 1)
    return "done"


@agent
def refund_sync(number: int) -> str:
    pay(number)
    while asked_sync("refund?") != "yes":
        pass
    pay(number + 1)
    return "done"


def left(work: Callable[[], object]) -> Suspended:
    with pytest.raises(Suspended) as caught:
        work()
    return caught.value


def kinds(trace: Trace) -> list[str]:
    return [cast(str, entry["kind"]) for entry in trace.journal.entries if entry["kind"] != "tick"]


def say(store: MemoryStore, run: str, ask: str, value: Tree) -> None:
    store.post(run, Mail("answer", ask, value=value, who="ann", at=17, via="test"))


def ask_ids(error: Suspended) -> list[str]:
    return [ask.ask for ask in error.asks]


@pytest.mark.parametrize("program", [refund, refund_sync])
def test_a_run_is_asked_until_the_answer_is_yes(store: MemoryStore, program: Agent[..., Any]) -> None:
    waits = left(lambda: program.run(5, store=store))
    run = waits.run
    for ask, said in (("2", "no"), ("3", "no")):
        assert ask_ids(waits) == [ask]
        say(store, run, ask, said)
        waits = left(lambda: resume(run, program, store=store))
    assert ask_ids(waits) == ["4"]
    assert DONE == [5]
    say(store, run, "4", "yes")
    trace = resume(run, program, store=store)
    assert (trace.status, trace.output, DONE) == ("completed", "done", [5, 6])
    assert kinds(trace).count("resume") == 3
    assert [entry["epoch"] for entry in trace.journal.entries if entry["kind"] == "resume"] == [2, 3, 4]
    assert trace.verify().complete
    assert trace.replay(agent=program).verdict == "identical"


@pytest.mark.parametrize("program", [refund, refund_sync])
def test_a_run_that_nobody_answered_is_left_as_it_was(store: MemoryStore, program: Agent[..., Any]) -> None:
    waits = left(lambda: program.run(5, store=store))
    before = store.read(waits.run)
    again = left(lambda: resume(waits.run, program, store=store))
    assert (again.run, ask_ids(again)) == (waits.run, ["2"])
    assert store.read(waits.run) == before


def test_a_replay_of_a_suspended_run_is_identical_so_far(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    trace = Trace.open(waits.run, store)
    report = trace.replay(agent=refund)
    assert report.verdict == "identical"
    assert "so far: the run is suspended and waits in call 2 (ask ask)" in report.notes
    assert "output" not in report.compared


def test_a_trace_says_that_it_is_suspended_and_is_resumed(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    trace = Trace.open(waits.run, store)
    assert trace.status == "suspended"
    say(store, waits.run, "2", "yes")
    ended = trace.resume(agent=refund, store=store)
    assert (ended.status, ended.output) == ("completed", "done")
    assert trace.status == "suspended", "as it was read"


def test_under_replay_the_run_waits_as_recorded(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = left(lambda: refund.run(5, store=store))
    monkeypatch.setenv("AGENTLOOM", "replay")
    again = left(lambda: refund.run(5, store=store))
    assert (again.run, ask_ids(again)) == (waits.run, ["2"])


def test_a_run_that_is_not_kept_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    @agent
    async def asks() -> Any:
        return await agentloom.ask("go?")

    monkeypatch.setenv("AGENTLOOM", "off")
    with pytest.raises(NotSupported, match="cannot be resumed"):
        asks.run()


def test_who_said_what_and_when_is_in_the_trace(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    say(store, waits.run, "2", "yes")
    trace = resume(waits.run, refund, store=store)
    entry = next(one for one in trace.journal.entries if one["kind"] == "answer")
    assert entry["ask"] == "2"
    assert trace.journal.tree(entry["val"]) == "yes"
    assert trace.journal.tree(entry["who"]) == {"at": 17, "via": "test", "name": "ann"}


def test_changed_code_leaves_the_run_as_it_was(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    say(store, waits.run, "2", "yes")
    before = store.read(waits.run)

    @agent(name="refund")
    async def changed(number: int) -> str:
        await charge(number + 100)
        await asked("refund?")
        return "done"

    with pytest.raises(DivergenceError) as caught:
        resume(waits.run, changed, store=store)
    assert caught.value.report.finding is not None
    assert caught.value.report.finding.call.name == "charge"
    assert store.read(waits.run) == before
    assert DONE == [5]
    assert resume(waits.run, refund, store=store).output == "done"


def test_a_prefix_that_ends_too_early_leaves_the_run_as_it_was(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    before = store.read(waits.run)

    @agent(name="refund")
    async def short(number: int) -> str:
        return "done"

    with pytest.raises(DivergenceError):
        resume(waits.run, short, store=store)
    assert store.read(waits.run) == before


@agent
async def two() -> list[Any]:
    async def one(text: str) -> Any:
        await charge(1)
        said = await asked(text)
        await charge(2)
        return said

    return list(await asyncio.gather(one("a"), one("b")))


def test_several_questions_are_open_at_once(store: MemoryStore) -> None:
    waits = left(lambda: two.run(store=store))
    assert ask_ids(waits) == ["3", "4"]
    say(store, waits.run, "4", "B")
    assert ask_ids(left(lambda: resume(waits.run, two, store=store))) == ["3"]
    say(store, waits.run, "3", "A")
    trace = resume(waits.run, two, store=store)
    assert trace.output == ["A", "B"]
    assert DONE == [1, 1, 2, 2]
    assert trace.replay(agent=two).verdict == "identical"


@agent
def two_in_threads() -> list[Any]:
    def one(text: str) -> Any:
        pay(1)
        said = asked_sync(text)
        pay(2)
        return said

    return agentloom.sync.parallel(lambda: one("a"), lambda: one("b"))


def test_questions_of_threads(store: MemoryStore) -> None:
    waits = left(lambda: two_in_threads.run(store=store))
    assert len(waits.asks) == 2
    for ask in ask_ids(waits):
        say(store, waits.run, ask, f"said {ask}")
    trace = resume(waits.run, two_in_threads, store=store)
    assert trace.output == [f"said {ask}" for ask in ask_ids(waits)]
    assert DONE == [1, 1, 2, 2]
    assert trace.replay(agent=two_in_threads).verdict == "identical"


def test_aresume_in_a_running_loop(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    say(store, waits.run, "2", "yes")

    async def main() -> Trace:
        with pytest.raises(NotSupported, match="await aresume"):
            resume(waits.run, refund, store=store)
        return await aresume(waits.run, refund, store=store)

    assert asyncio.run(main()).output == "done"


def test_the_agent_is_found_by_its_name_in_the_trace(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    say(store, waits.run, "2", "yes")
    assert resume(waits.run, store=store).output == "done"

    @agent
    async def local() -> None:
        await asked("?")

    waits = left(lambda: local.run(store=store))
    with pytest.raises(TargetError, match="is not loaded in this process"):
        resume(waits.run, store=store)


def test_a_run_that_has_ended_is_refused(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    say(store, waits.run, "2", "yes")
    resume(waits.run, refund, store=store)
    with pytest.raises(NotSupported, match=r"has ended \(completed\)"):
        resume(waits.run, refund, store=store)


def test_a_run_that_somebody_writes_is_refused(store: MemoryStore) -> None:
    waits = left(lambda: refund.run(5, store=store))
    held = store.reopen(waits.run)
    with pytest.raises(LeaseHeld):
        resume(waits.run, refund, store=store)
    held.close()


def test_nothing_is_resumed_inside_a_run(store: MemoryStore) -> None:
    @agent
    def outer() -> None:
        resume("last", refund, store=store)

    with pytest.raises(NotSupported, match="inside a run of outer"):
        outer.run(store=store)


# -- times -----------------------------------------------------------------------------------------------------------


def test_what_is_overdue_goes_on_by_itself(store: MemoryStore) -> None:
    @agent
    async def waits_for_nobody() -> Any:
        return await asked("?", due=1, default=lambda: "nobody")

    assert waits_for_nobody.run(store=store).output == "nobody"

    @agent
    async def fails() -> Any:
        return await asked("?", due=1)

    with pytest.raises(Expired, match="was not answered in time"):
        fails.run(store=store)


@pytest.mark.parametrize("guard", ["strict", "off"])
def test_a_long_sleep_is_left_to_whoever_resumes(
    store: MemoryStore, guard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    @agent
    async def sleeps() -> str:
        await charge(1)
        await agentloom.sleep(3600)
        await charge(2)
        return "rested"

    waits = left(lambda: sleeps.run(store=store, guard=guard))
    assert waits.due is not None
    assert [ask.kind for ask in waits.asks] == ["time"]
    assert left(lambda: resume(waits.run, sleeps, store=store)).due == waits.due
    later = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(
        Waits.__init__, "__kwdefaults__", {**(Waits.__init__.__kwdefaults__ or {}), "clock": lambda: later}
    )
    trace = resume(waits.run, sleeps, store=store)
    assert (trace.output, DONE) == ("rested", [1, 2])
    assert trace.replay(agent=sleeps).verdict == "identical"


# -- calls in doubt --------------------------------------------------------------------------------------------------


def cut(store: MemoryStore, run: str, kind: str, count: int) -> tuple[MemoryStore, bytes]:
    """The trace as it is where the process died behind the ``count``-th entry of ``kind``."""
    data = store.read(run)
    seen = 0
    end = 0
    for line in data.splitlines(keepends=True):
        end += len(line)
        if b'"kind":"%b"' % kind.encode() in line:
            seen += 1
            if seen == count:
                break
    other = MemoryStore()
    other.add(data[:end])
    return other, data[:end]


@agent
async def mixed() -> list[Any]:
    first = await look(1)
    rest = await asyncio.gather(book(2), charge(3), look(4))
    return [first, *rest, await charge(5)]


def test_calls_in_doubt_are_performed_again_or_asked_about(store: MemoryStore) -> None:
    run = mixed.run(store=store).run_id
    key = KEYS[0]
    died, _ = cut(store, run, "request", 4)
    DONE.clear()
    waits = left(lambda: resume(run, mixed, store=died))
    assert DONE == [2, 4]
    assert KEYS == [key, key]
    assert ask_ids(waits) == ["3"]
    say(died, run, "3", {"happened": True, "result": 77})
    trace = resume(run, mixed, store=died)
    assert trace.output == [1, 2, 77, 4, 5]
    assert DONE == [2, 4, 5]
    assert trace.verify().complete
    assert trace.replay(agent=mixed).verdict == "identical"


def test_what_did_not_happen_is_performed_once(store: MemoryStore) -> None:
    run = mixed.run(store=store).run_id
    died, _ = cut(store, run, "request", 4)
    left(lambda: resume(run, mixed, store=died))
    say(died, run, "3", {"happened": False})
    DONE.clear()
    trace = resume(run, mixed, store=died)
    assert (trace.output, DONE) == ([1, 2, 3, 4, 5], [3, 5])
    assert trace.replay(agent=mixed).verdict == "identical"


@agent
def in_turn() -> list[int]:
    return [pay(number) for number in range(3)]


@pytest.mark.parametrize("happened", [False, True])
def test_a_blocking_call_in_doubt(store: MemoryStore, happened: bool) -> None:
    run = in_turn.run(store=store).run_id
    died, _ = cut(store, run, "request", 2)
    waits = left(lambda: resume(run, in_turn, store=died))
    assert ask_ids(waits) == ["2"]
    DONE.clear()
    say(died, run, "2", {"happened": True, "result": 1} if happened else {"happened": False})
    trace = resume(run, in_turn, store=died)
    assert trace.output == [0, 1, 2]
    assert DONE == ([2] if happened else [1, 2])
    assert trace.replay(agent=in_turn).verdict == "identical"


def test_it_dies_at_every_entry(store: MemoryStore) -> None:
    """Whatever the last entry, the run comes to its end, and no effect that has an outcome is performed again."""
    whole = mixed.run(store=store)
    data = store.read(whole.run_id)
    lines = data.splitlines(keepends=True)
    ends = [at for at, line in enumerate(lines) if b'"kind":"' in line and b'"seq":' in line]
    for last in ends[1:-1]:
        died = MemoryStore()
        died.add(b"".join(lines[: last + 1]))
        finished = sum(call.status == "ok" for call in Trace(died.read(whole.run_id)).calls)
        DONE.clear()
        for _ in range(9):
            try:
                trace = resume(whole.run_id, mixed, store=died)
            except Suspended as waits:
                for ask in ask_ids(waits):
                    say(died, whole.run_id, ask, {"happened": False})
            else:
                break
        else:
            pytest.fail(f"never ended after entry {last}")
        assert trace.output == whole.output
        assert len(DONE) == 5 - finished
        assert trace.verify().complete
        assert trace.replay(agent=mixed).verdict == "identical"


def parts(*values: int) -> Callable[[object], AsyncIterator[object]]:
    async def made(_: object) -> AsyncIterator[object]:
        for value in values:
            DONE.append(value)
            yield value

    return made


STREAM = CallSpec("model", "m", {"messages": []}, stream=True)


@agent
async def reads() -> list[Any]:
    got: list[Any] = []
    try:
        async for value in open_async(STREAM, parts(1, 2, 3)):
            got.append(value)
            await look(cast(int, value))
    except Interrupted as error:
        got.append(str(error).splitlines()[0])
    return got


def test_a_stream_that_was_read_is_broken(store: MemoryStore) -> None:
    run = reads.run(store=store).run_id
    died, _ = cut(store, run, "chunks", 1)
    trace = resume(run, reads, store=died)
    assert trace.output == [1, "the process died while model m was read; 1 of its parts had come"]
    assert trace.replay(agent=reads).verdict == "identical"


def test_a_stream_of_which_nothing_had_come_is_read_anew(store: MemoryStore) -> None:
    run = reads.run(store=store).run_id
    died, _ = cut(store, run, "request", 1)
    trace = resume(run, reads, store=died)
    assert trace.output == [1, 2, 3]
    assert trace.replay(agent=reads).verdict == "identical"


def blocks(*values: int) -> Callable[[object], Iterator[object]]:
    def made(_: object) -> Iterator[object]:
        yield from values

    return made


@agent
def reads_sync() -> list[Any]:
    got: list[Any] = []
    try:
        for value in open_inline(STREAM, blocks(1, 2, 3)):
            got.append(value)
            pay(cast(int, value))
    except Interrupted as error:
        got.append(str(error).splitlines()[0])
    return got


@pytest.mark.parametrize(("kind", "output"), [("chunks", "1 of its parts had come"), ("request", None)])
def test_blocking_streams(store: MemoryStore, kind: str, output: str | None) -> None:
    run = reads_sync.run(store=store).run_id
    died, _ = cut(store, run, kind, 1)
    trace = resume(run, reads_sync, store=died)
    if output is None:
        assert trace.output == [1, 2, 3]
    else:
        assert trace.output[0] == 1
        assert output in trace.output[1]
    assert trace.replay(agent=reads_sync).verdict == "identical"


# -- a failed call ---------------------------------------------------------------------------------------------------


@agent
async def stumbles() -> list[int]:
    return [await charge(1), await flaky(2), await charge(3)]


def test_the_call_that_failed_is_tried_again(store: MemoryStore) -> None:
    FAILS.append(True)
    with pytest.raises(ConnectionError) as caught:
        stumbles.run(store=store)
    run = agentloom.trace_of(caught.value).run_id
    with pytest.raises(NotSupported, match="--retry-failed"):
        resume(run, stumbles, store=store)
    DONE.clear()
    trace = resume(run, stumbles, store=store, retry_failed=True)
    assert (trace.status, trace.output, DONE) == ("completed", [1, 2, 3], [2, 3])
    assert trace.verify().complete
    assert trace.replay(agent=stumbles).verdict == "identical"
    assert [call.status for call in trace.calls] == ["ok", "ok", "ok"]


def test_it_may_fail_again_and_be_tried_again(store: MemoryStore) -> None:
    FAILS.extend([True, True])
    with pytest.raises(ConnectionError) as caught:
        stumbles.run(store=store)
    run = agentloom.trace_of(caught.value).run_id
    with pytest.raises(ConnectionError):
        resume(run, stumbles, store=store, retry_failed=True)
    assert Trace.open(run, store).status == "failed"
    trace = resume(run, stumbles, store=store, retry_failed=True)
    assert trace.output == [1, 2, 3]
    assert trace.replay(agent=stumbles).verdict == "identical"


@agent
async def goes_on_after() -> list[int]:
    try:
        await flaky(1)
    except ConnectionError:
        await charge(2)
    raise ValueError("gives up")


def test_what_was_done_after_the_failure_is_not_done_twice(store: MemoryStore) -> None:
    FAILS.append(True)
    with pytest.raises(ValueError, match="gives up") as caught:
        goes_on_after.run(store=store)
    run = agentloom.trace_of(caught.value).run_id
    with pytest.raises(NotSupported, match="would do that twice"):
        resume(run, goes_on_after, store=store, retry_failed=True)


def test_a_run_without_a_failed_call_has_none_to_try(store: MemoryStore) -> None:
    @agent
    async def own() -> None:
        await charge(1)
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own") as caught:
        own.run(store=store)
    run = agentloom.trace_of(caught.value).run_id
    with pytest.raises(NotSupported, match="its own code did"):
        resume(run, own, store=store, retry_failed=True)
    run = mixed.run(store=store).run_id
    with pytest.raises(NotSupported, match="has not failed: it is completed"):
        resume(run, mixed, store=store, retry_failed=True)
