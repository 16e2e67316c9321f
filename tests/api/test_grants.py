"""A grant holds for one call, as it was approved."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import agentloom
from agentloom import Suspended, agent, answer, resume, sync, tool
from agentloom.errors import GrantRefused, ValueRefused
from agentloom.store import MemoryStore
from agentloom.store.memory import MemoryStore as Store

DONE: list[object] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    DONE.clear()


@pytest.fixture
def store() -> Store:
    return MemoryStore()


@tool
async def refund(order: int, amount: float = 1.0, *, note: str = "", tags: list[str] | None = None) -> str:
    DONE.append((order, amount, note, tags))
    return "refunded"


@tool
def send(order: int) -> str:
    DONE.append(order)
    return "sent"


def approved(program: Any, store: Store, value: object = "yes") -> Any:
    with pytest.raises(Suspended) as caught:
        program.run(store=store)
    answer(caught.value.run, value, by="ann", store=store)
    trace = resume(caught.value.run, program, store=store)
    assert trace.replay(agent=program).verdict == "identical"
    return trace.output


async def why(call: Any) -> str:
    try:
        await call()
    except GrantRefused as error:
        return f"{error.why}: {error.message}" if error.hint else "no hint"
    return "made"


def test_each_refusal_has_words_of_its_own_and_calls_nothing(store: Store) -> None:
    @agent
    async def program() -> list[str]:
        grant = await agentloom.approve(refund, 812, 100.0)

        @tool(name="refund")
        async def changed(
            order: int, amount: int = 1, *, note: str = "", tags: list[str] | None = None
        ) -> str:
            raise AssertionError("called")

        return [
            await why(lambda: grant(refund, 812, 101.0)),
            await why(lambda: grant(refund, 812, 100)),
            await why(lambda: grant(refund, 812, 100.0, note="x")),
            await why(lambda: grant(send, 812)),
            await why(lambda: grant(changed, 812, 100)),
            await why(lambda: grant(refund, amount=100.0, order=812)),
            await why(lambda: grant(refund, 812, 100.0)),
            await why(grant),
        ]

    said = approved(program, store)
    assert said == [
        "arguments: refund was not called: its approval is for other arguments: amount is not what was approved",
        "arguments: refund was not called: its approval is for other arguments: amount is not what was approved",
        "arguments: refund was not called: its approval is for other arguments: note is not what was approved",
        "tool: refund was not called: its approval is for refund, and not for send",
        "schema: refund was not called: its approval was given before the tool changed: amount",
        "made",
        "used: refund was not called: its approval was used before: it holds for one call",
        "used: refund was not called: its approval was used before: it holds for one call",
    ]
    assert DONE[0] == (812, 100.0, "", None)
    assert len(DONE) == 1


def test_a_denied_call_is_refused_with_the_reason(store: Store) -> None:
    @agent
    async def program() -> list[object]:
        grant = await agentloom.approve(refund, 812)
        return [bool(grant), repr(grant), await why(grant)]

    assert approved(program, store, {"granted": False, "reason": "too much"}) == [
        False,
        "<grant of refund: denied by ann>",
        "denied: refund was not called: its approval was denied by ann: too much",
    ]
    assert DONE == []


def test_a_call_that_failed_has_used_it_up(store: Store) -> None:
    @tool
    def fails(order: int) -> None:
        DONE.append(order)
        raise ConnectionError("down")

    @agent
    def program() -> str:
        grant = sync.approve(fails, 812)
        for _ in range(2):
            try:
                grant()
            except ConnectionError:
                continue
            except GrantRefused as error:
                return str(error.why)
        return "twice"

    assert approved(program, store) == "used"
    assert DONE[:1] == [812]


def test_arguments_that_were_changed_meanwhile_are_others(store: Store) -> None:
    @agent
    async def program() -> list[str]:
        tags = ["a"]
        grant = await agentloom.approve(refund, 812, tags=tags)
        tags.append("b")
        first = await why(grant)
        tags.pop()
        return [first, await why(grant)]

    first, second = approved(program, store)
    assert first.startswith("arguments: ")
    assert "tags is not what was approved" in first
    assert second == "made"


def test_a_grant_is_no_value(store: Store) -> None:
    @agent
    async def program() -> str:
        grant = await agentloom.approve(refund, 812)
        with pytest.raises(ValueRefused):
            await agentloom.note(grant)
        with pytest.raises(TypeError, match="with the arguments of the call"):
            grant(order=812)
        return grant.tool

    assert approved(program, store) == "refund"


@dataclasses.dataclass
class Order:
    number: int


@tool
def ship(order: Order) -> int:
    DONE.append(order)
    return order.number


def test_values_of_user_types_are_compared_as_they_are_kept(store: Store) -> None:
    @agent
    def program() -> list[object]:
        grant = sync.approve(ship, Order(812), evidence=Order(1))
        try:
            grant(ship, Order(813))
        except GrantRefused as error:
            return [error.why, grant(ship, Order(812))]
        return []

    assert approved(program, store) == ["arguments", 812]
    assert DONE[0] == Order(812)


@tool(secret=["card", "order.pin"], noted=["trace"])
def pay(order: dict[str, Any], card: str, trace: int = 0) -> str:
    DONE.append((order, card, trace))
    return "paid"


def test_what_a_tool_keeps_secret_is_not_in_the_question(store: Store) -> None:
    cards = ["visa 4111 pin one"]

    @agent
    def program() -> list[object]:
        order = {"number": 812, "pin": "tango-7"}
        grant = sync.approve(pay, order, cards[0], trace=len(cards))
        try:
            grant(pay, order, "another card", trace=len(cards))
        except GrantRefused as error:
            return [error.message, grant()]
        return []

    with pytest.raises(Suspended) as caught:
        program.run(store=store)
    (ask,) = caught.value.asks
    assert ask.approval is not None
    assert ask.approval["args"] == {"order": {"number": 812}, "trace": 1}
    assert ask.question == "Approve pay(order={'number': 812}, trace=1)?"
    cards.append("noted arguments may be others in a replay")
    answer(caught.value.run, "yes", store=store)
    trace = resume(caught.value.run, program, store=store)
    assert trace.output == [
        "pay was not called: its approval is for other arguments: card is not what was approved", "paid",
    ]  # fmt: skip
    assert DONE == [({"number": 812, "pin": "tango-7"}, "visa 4111 pin one", 2)]
    entries = b"".join(line for line in store.read(trace.run_id).splitlines() if b"sync.approve" not in line)
    assert b"visa 4111" not in entries
    assert b"tango-7" not in entries
