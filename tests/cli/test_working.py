"""Which runs can go on, and when one that could not is tried again."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from agentloom import agent, ask, signal
from agentloom.api.answering import answer, send_signal
from agentloom.api.resuming import resume
from agentloom.cli.working import Backoff, Ready, ready_runs, state_of, still_ready
from agentloom.errors import FormatError, RunNotFound, Suspended
from agentloom.store import LocalStore, Mail, MemoryStore, Store
from agentloom.testing.store_contract import Sample
from tests.cli.suspending import waits
from tests.store.test_waiting import Story

DAY = 86_400 * 10**9


@agent
async def asks() -> str:
    return str(await ask("Shall we?", deadline=3600.0))


@agent
async def listens() -> str:
    return f"{await signal('a')} {await signal('b')}"


def found(store: Store, later: int = 0) -> dict[str, str]:
    return {ready.run: ready.why for ready in ready_runs(store, time.time_ns() + later)}


def test_answered_due_sent_and_asked_to_stop(tmp_path: object) -> None:
    store = LocalStore(str(tmp_path))
    first, second, third = waits(asks, store), waits(asks, store), waits(listens, store)
    assert found(store) == {}
    answer(first, "yes", store=store)
    assert found(store) == {first: "answered"}
    assert found(store, DAY) == {first: "answered", second: "due"}
    send_signal(third, "b", store=store)
    assert found(store) == {first: "answered"}  # it waits for another message first
    send_signal(third, "a", store=store)
    assert found(store) == {first: "answered", third: "sent a message"}
    store.post(second, Mail("cancel", "cancel", at=time.time_ns()))
    assert found(store)[second] == "asked to stop"
    resume(first, asks, store=store)
    resume(third, listens, store=store)
    assert set(found(store)) == {second}


def test_what_a_run_has_taken_does_not_make_it_ready_again() -> None:
    store = MemoryStore()
    run = waits(listens, store)
    send_signal(run, "a", store=store)
    with pytest.raises(Suspended):
        resume(run, listens, store=store)
    assert found(store) == {}
    send_signal(run, "a", store=store)
    assert found(store) == {}
    send_signal(run, "b", store=store)
    assert found(store) == {run: "sent a message"}


def test_a_run_whose_process_died_while_it_was_resumed_is_ready_and_no_other_that_crashed() -> None:
    store = MemoryStore()
    for number, resumed in ((1, True), (2, False)):
        story = Story(number)
        parts = [story.start(), story.begin("root/a#1", "tool")]
        parts += [story.resume(2)] if resumed else []
        appender = store.create(story.run)
        for part in parts:
            appender.append(part)
        appender.close()
    assert found(store) == {Story(1).run: "left by a process that died"}


def test_a_run_that_is_being_written_is_left_alone() -> None:
    store = MemoryStore()
    run = waits(asks, store)
    answer(run, "yes", store=store)
    appender = store.reopen(run)
    assert found(store) == {}
    appender.close()
    assert found(store) == {run: "answered"}


def test_damaged_mail_is_told_and_stops_no_other(tmp_path: object) -> None:
    store = LocalStore(str(tmp_path))
    bad, good = waits(asks, store), waits(asks, store)
    for run in (bad, good):
        answer(run, "yes", store=store)
    (letter,) = (store.root + f"/mail/{bad}/00000001.json",)
    with open(letter, "w") as file:
        file.write("nonsense")
    problems: list[tuple[str, FormatError]] = []
    assert [one.run for one in ready_runs(store, time.time_ns(), problems)] == [good]  # type: ignore[arg-type]
    assert [run for run, _ in problems] == [bad]


def test_still_ready_until_somebody_goes_on() -> None:
    store = MemoryStore()
    run = waits(asks, store)
    answer(run, "yes", store=store)
    (ready,) = ready_runs(store, time.time_ns())
    assert still_ready(store, ready)
    resume(run, asks, store=store)
    assert not still_ready(store, ready)
    store.remove(run)
    with pytest.raises(RunNotFound):
        still_ready(store, ready)


def test_still_ready_reads_whole_lines_only(tmp_path: object) -> None:
    store = LocalStore(str(tmp_path))
    sample = Sample()
    appender = store.create(sample.run)
    appender.append(sample.start())
    appender.close()
    row = store.runs()[0]
    ready = Ready(sample.run, "", (row.head, 0))
    assert still_ready(store, ready)
    with open(store.path(sample.run), "ab") as file:
        file.write(b'{"seq":1,"torn')
    assert still_ready(store, ready)


def test_a_run_in_trouble_is_left_alone_longer_each_time_until_something_changes() -> None:
    backoff, ready = Backoff(), Ready("r", "answered", ("h", 1))
    now = 100.0
    assert backoff.free(ready, now)
    pauses = []
    for _ in range(9):
        pauses.append(backoff.failed(ready, now))
        assert not backoff.free(ready, now + pauses[-1] - 1)
        now += pauses[-1]
        assert backoff.free(ready, now)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert backoff.free(Ready("other", "due", ("h", 1)), now)
    backoff.failed(ready, now)
    changed = Ready("r", "answered", ("h", 2))
    assert backoff.free(changed, now)
    assert backoff.failed(changed, now) == 60
    backoff.went_on(changed)
    assert backoff.free(changed, now)


def test_what_an_attempt_left_in_the_trace_is_no_reason_to_try_sooner() -> None:
    backoff, ready = Backoff(), Ready("r", "left by a process that died", ("h1", 1))
    assert backoff.failed(ready, 0.0, ("h2", 1)) == 60
    again = Ready("r", "left by a process that died", ("h2", 1))
    assert not backoff.free(again, 59.0)
    assert backoff.free(again, 60.0)
    assert backoff.failed(again, 60.0, ("h3", 1)) == 120
    assert backoff.free(Ready("r", "answered", ("h3", 2)), 61.0)


def test_a_run_that_was_stopped_and_went_on_is_not_stopped_again() -> None:
    @agent
    async def stays() -> str:
        try:
            return str(await ask("Shall we?"))
        except asyncio.CancelledError:
            return str(await ask("Really?"))

    store = MemoryStore()
    run = waits(stays, store)
    store.post(run, Mail("cancel", "cancel", at=time.time_ns()))
    assert found(store) == {run: "asked to stop"}
    with pytest.raises(Suspended):
        resume(run, stays, store=store)
    assert found(store) == {}
    (row,) = store.runs()
    assert (row.status, state_of(store, run)) == ("suspended", (row.head, 1))


def test_the_index_is_not_needed(tmp_path: object) -> None:
    seed = 11
    print("seed", seed)
    store = LocalStore(str(tmp_path))
    names = [waits(asks, store) for _ in range(12)]
    chosen = set(random.Random(seed).sample(names, 5))
    for run in chosen:
        answer(run, "yes", store=store)
    assert set(found(store)) == chosen
    with open(store.root + "/index.sqlite", "wb") as file:
        file.write(b"nonsense" * 1000)
    assert set(found(store)) == chosen
