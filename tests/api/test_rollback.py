"""What a run has done is taken back: newest first, each once, by a run of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agentloom import Suspended, Trace, agent, tool
from agentloom.api.rollback import ROLLBACK, plan_of, rollback
from agentloom.errors import LeaseHeld, NotSupported, TargetError
from agentloom.runtime import undoing
from agentloom.runtime.undoing import undo_of
from agentloom.store import MemoryStore
from agentloom.store.mail import Mail

DONE: list[Any] = []
FAILS: list[bool] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    DONE.clear()
    FAILS.clear()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


async def unbook(seat: str, result: int) -> str:
    DONE.append(("unbook", seat, result))
    if FAILS and FAILS.pop():
        raise ConnectionError("down")
    return "free"


@tool(undo=unbook)
async def book(seat: str, price: int = 10) -> int:
    DONE.append(("book", seat))
    return len(DONE)


@tool
def give_back(amount: int) -> None:
    DONE.append(("give back", amount))


@tool(undo=give_back)
def pay(amount: int) -> str:
    DONE.append(("pay", amount))
    return "paid"


def interrupt() -> None:
    raise KeyboardInterrupt


@tool(undo=interrupt)
def stopped() -> None: ...


@tool
async def mail_to(who: str) -> None:
    DONE.append(("mail", who))


@agent
async def trip() -> str:
    await book("1A")
    pay(40)
    await mail_to("ann")
    await book("2B")
    return "booked"


def test_newest_first_each_once(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    DONE.clear()
    back = rollback(trace.run_id, store=store)
    assert DONE == [("unbook", "2B", 4), ("give back", 40), ("unbook", "1A", 1)]
    assert (back.status, back.output, back.tags) == ("completed", [4, 2, 1], {"rollback": trace.run_id})
    assert [call.name for call in back.calls] == ["claim", "unbook", "give_back", "unbook"]
    assert back.replay().verdict == "identical"
    assert rollback(trace.run_id, store=store).run_id == back.run_id
    assert len(DONE) == 3


def test_the_plan_says_what_cannot_be_taken_back(store: MemoryStore) -> None:
    can, cannot = plan_of(trip.run(store=store))
    assert [(one.number, one.tool, one.args) for one in can] == [
        (4, "book", {"seat": "2B", "price": 10}),
        (2, "pay", {"amount": 40}),
        (1, "book", {"seat": "1A", "price": 10}),
    ]
    assert [call.name for call in cannot] == ["mail_to"]


def test_an_undo_that_failed_is_tried_again_and_the_others_are_not(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    DONE.clear()
    FAILS[:] = [True, False]
    with pytest.raises(ConnectionError):
        rollback(trace.run_id, store=store)
    back = rollback(trace.run_id, store=store)
    assert back.status == "completed"
    assert DONE == [
        ("unbook", "2B", 4),
        ("give back", 40),
        ("unbook", "1A", 1),
        ("unbook", "1A", 1),
    ]


def test_where_an_undo_is_not_loaded_it_is_gone_on_with_once_it_is(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = trip.run(store=store)
    DONE.clear()
    FAILS[:] = [True, False]
    with pytest.raises(ConnectionError):
        rollback(trace.run_id, store=store)
    with monkeypatch.context() as patch:
        patch.delitem(undoing._undos, "book")  # pyright: ignore[reportPrivateUsage]
        for _ in range(2):
            with pytest.raises(TargetError, match="nothing here takes back tool book"):
                rollback(trace.run_id, store=store)
    assert len(DONE) == 3
    assert rollback(trace.run_id, store=store).status == "completed"
    assert DONE[3:] == [("unbook", "1A", 1)]


def test_a_rollback_that_was_cancelled_says_so(store: MemoryStore) -> None:
    @agent
    async def paid() -> None:
        pay(40)
        stopped()

    trace = paid.run(store=store)
    with pytest.raises(KeyboardInterrupt):
        rollback(trace.run_id, store=store)
    with pytest.raises(NotSupported, match="was cancelled") as refused:
        rollback(trace.run_id, store=store)
    assert "by hand" in (refused.value.hint or "")
    assert DONE == [("pay", 40)]


def test_of_several_at_once_one_takes_it_back(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    DONE.clear()
    said: list[object] = []

    def work() -> None:
        try:
            said.append(rollback(trace.run_id, store=store).status)
        except (LeaseHeld, NotSupported) as error:
            said.append(type(error).__name__)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "completed" in said
    assert sorted(DONE, key=str) == [("give back", 40), ("unbook", "1A", 1), ("unbook", "2B", 4)]


def test_what_was_in_doubt_when_the_process_died_is_asked_about(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    back = rollback(trace.run_id, store=store)
    data, end = store.read(back.run_id), 0
    for line in data.splitlines(keepends=True):
        end += len(line)
        if b'"name":"give_back"' in line and b'"kind":"request"' in line:
            break
    other = MemoryStore()
    other.add(store.read(trace.run_id))
    other.add(data[:end])
    other.post(trace.run_id, Mail("signal", ROLLBACK, ROLLBACK, value=back.run_id))
    DONE.clear()
    with pytest.raises(Suspended) as waits:
        rollback(trace.run_id, store=other)
    assert DONE == []
    other.post(back.run_id, Mail("answer", waits.value.asks[0].ask, value={"happened": True, "result": None}))
    assert rollback(trace.run_id, store=other).status == "completed"
    assert DONE == [("unbook", "1A", 1)]


def test_a_run_with_nothing_to_take_back(store: MemoryStore) -> None:
    @agent
    async def only_mail() -> None:
        await mail_to("ann")

    trace = only_mail.run(store=store)
    with pytest.raises(NotSupported, match="no call that can be taken back"):
        rollback(trace.run_id, store=store)


def test_a_run_in_doubt_is_asked_about_first(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    lines = store.read(trace.run_id).splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if b'"kind":"request"' in line)
    other = MemoryStore()
    other.add(b"".join(lines[: last + 1]))
    with pytest.raises(NotSupported, match="is in doubt"):
        rollback(trace.run_id, store=other)


def test_a_run_that_would_go_on_is_cancelled_first(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    lines = store.read(trace.run_id).splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if b'"kind":"outcome"' in line)
    other = MemoryStore()
    other.add(b"".join(lines[: last + 1]))
    with pytest.raises(NotSupported, match=r"has not ended \(unfinished\)"):
        rollback(trace.run_id, store=other)


def test_a_run_that_is_being_written_is_refused(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    held = store.reopen(trace.run_id)
    with pytest.raises(LeaseHeld):
        rollback(trace.run_id, store=store)
    held.close()


def test_an_undo_takes_what_the_tool_has() -> None:
    with pytest.raises(
        ValueError, match=r"undo of tool wrong takes order: it is given the tool's arguments \(seat\)"
    ):

        @tool(undo=lambda order: None)
        def wrong(seat: str) -> None: ...


def test_two_tools_of_one_name() -> None:
    def first() -> None: ...
    def second() -> None: ...

    tool(name="same name", undo=lambda: None)(first)
    assert undo_of("same name") is not None
    tool(name="same name", undo=lambda: None)(second)
    with pytest.raises(NotSupported, match="several tools are called same name"):
        undo_of("same name")


def test_trace_of_the_rollback_is_found_by_its_tag(store: MemoryStore) -> None:
    trace = trip.run(store=store)
    back = rollback(trace.run_id, store=store)
    assert Trace.open(f"rollback={trace.run_id}", store).run_id == back.run_id
