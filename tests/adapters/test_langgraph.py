"""LangGraph on the real package, without a model: nodes, checkpointers, interrupts, tools that ask a person."""

from __future__ import annotations

import asyncio
import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

import agentloom
from agentloom import Trace
from agentloom.store import open_store
from tests.frameworks.proof import both, kinds, recorded, replayed

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@tool
def look(item: str) -> str:
    """Looks something up."""
    RAN.append(item)
    return item.upper()


class State(TypedDict):
    found: Annotated[list[str], operator.add]


def shelf(*, sends: bool) -> Any:
    def first(state: State) -> State:
        return {"found": [look.invoke({"item": "first"})]}

    def each(state: Any) -> State:
        return {"found": [look.invoke({"item": state["item"]})]}

    def inner(state: State) -> State:
        return {"found": [look.invoke({"item": "inner"})]}

    below = StateGraph(State)
    below.add_node("deep", inner)
    below.add_edge(START, "deep")
    below.add_edge("deep", END)
    graph = StateGraph(State)
    graph.add_node("first", first)
    graph.add_node("each", each)
    graph.add_node("sub", below.compile())
    graph.add_edge(START, "first")
    if sends:
        graph.add_conditional_edges(
            "first", lambda _: [Send("each", {"item": name}) for name in "abc"], ["each"]
        )
        graph.add_edge("each", "sub")
    else:
        graph.add_edge("first", "sub")
    graph.add_edge("sub", END)
    return graph.compile()


def segments(trace: Trace) -> list[str]:
    """The names of nodes in the path of each call."""
    return [
        "/".join(part for part in call.path.split("/")[2:] if not part.startswith(("task[", "thread[")))
        for call in trace.calls
    ]


def test_the_path_of_a_call_tells_its_node() -> None:
    value, trace = both(lambda: shelf(sends=False).invoke({"found": []})["found"], RAN)
    assert value == ["FIRST", "FIRST", "INNER"]
    assert segments(trace) == ["first[0]", "sub[0]/deep[0]"]


@pytest.mark.parametrize("awaited", [False, True])
def test_nodes_side_by_side_keep_their_order(awaited: bool) -> None:
    async def later() -> Any:
        return (await shelf(sends=True).ainvoke({"found": []}))["found"]

    value, trace = both(later if awaited else lambda: shelf(sends=True).invoke({"found": []})["found"], RAN)
    assert set(value) == {"FIRST", "A", "B", "C", "INNER"}
    assert sorted(segments(trace)) == ["each[0]", "each[0]", "each[0]", "first[0]", "sub[0]/deep[0]"]


# -- checkpointers -----------------------------------------------------------------------------------------------------


@dataclass
class Own:
    """No trace knows this type; the saver's serializer does."""

    text: str


class Kept(TypedDict):
    count: int
    own: Any


def counting(saver: Any) -> Any:
    graph = StateGraph(Kept)
    graph.add_node("more", lambda state: {"count": state["count"] + 1, "own": Own("o")})
    graph.add_edge(START, "more")
    graph.add_edge("more", END)
    return graph.compile(checkpointer=saver)


THREAD: Any = {"configurable": {"thread_id": "t1"}}


@pytest.mark.parametrize("awaited", [False, True])
def test_a_checkpointer_is_memory(awaited: bool) -> None:
    saver = InMemorySaver()

    def call() -> Any:
        graph = counting(saver)
        result = graph.invoke({"count": 1, "own": None}, THREAD)
        return result["count"], len(list(graph.get_state_history(THREAD)))

    async def later() -> Any:
        graph = counting(saver)
        result = await graph.ainvoke({"count": 1, "own": None}, THREAD)
        return result["count"], len([one async for one in graph.aget_state_history(THREAD)])

    value, trace = recorded(later if awaited else call)
    assert value == (2, 3)
    found = kinds(trace)
    assert set(found) == {
        "memory checkpoint.get_tuple",
        "memory checkpoint.put",
        "memory checkpoint.put_writes",
        "memory checkpoint.list",
    }
    put = next(call for call in trace.calls if call.name == "checkpoint.put")
    assert put.request["config"]["thread_id"] == "t1"
    assert put.effect == "write"
    before = len(list(saver.list(THREAD)))
    assert replayed(later if awaited else call, trace) == value
    assert len(list(saver.list(THREAD))) == before


def test_a_later_run_of_a_thread_replays_alone() -> None:
    saver, store = InMemorySaver(), open_store(":memory:")
    recorded(lambda: counting(saver).invoke({"count": 1, "own": None}, THREAD), store)

    def second() -> Any:
        return counting(saver).invoke({"count": 41}, THREAD)["count"]

    value, trace = recorded(second, store)
    assert value == 42
    saver.storage.clear()
    assert replayed(second, trace) == 42


# -- interrupts --------------------------------------------------------------------------------------------------------


def asking(saver: Any) -> Any:
    def ask(state: State) -> State:
        look.invoke({"item": "before"})
        return {"found": [interrupt({"question": "sure?"})]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("awaited", [False, True])
def test_interrupt_and_resume_are_two_runs_that_replay(awaited: bool) -> None:
    saver, store = InMemorySaver(), open_store(":memory:")

    def turn(given: Any) -> Any:
        async def later() -> Any:
            return await asking(saver).ainvoke(given, THREAD)

        return later if awaited else lambda: asking(saver).invoke(given, THREAD)

    first, one = recorded(turn({"found": []}), store)
    assert first["__interrupt__"][0].value == {"question": "sure?"}
    second, two = recorded(turn(Command(resume="yes")), store)
    assert second == {"found": ["yes"]}
    saver.storage.clear()
    saver.writes.clear()
    RAN.clear()
    assert replayed(turn({"found": []}), one)["__interrupt__"][0].value == {"question": "sure?"}
    assert replayed(turn(Command(resume="yes")), two) == second
    assert RAN == []


@tool
def pay(cents: int) -> str:
    """Pays, once a person agrees."""
    RAN.append("asked")
    agreed = interrupt({"cents": cents})
    signed = interrupt("sign")
    RAN.append("paid")
    return f"{cents} {agreed} {signed}"


def paying(saver: Any) -> Any:
    def ask(state: MessagesState) -> Any:
        call = {"name": "pay", "args": {"cents": 40}, "id": "c1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([pay]))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "tools")
    graph.add_edge("tools", END)
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_tool_that_asks_a_person(awaited: bool) -> None:
    saver, store = InMemorySaver(), open_store(":memory:")

    def turn(given: Any) -> Any:
        async def later() -> Any:
            return await paying(saver).ainvoke(given, THREAD)

        return later if awaited else lambda: paying(saver).invoke(given, THREAD)

    inputs = [{"messages": [HumanMessage("pay", id="h")]}, Command(resume="yes"), Command(resume="Ada")]
    done = [(given, *recorded(turn(given), store)) for given in inputs]
    assert done[0][1]["__interrupt__"][0].value == {"cents": 40}
    assert done[1][1]["__interrupt__"][0].value == "sign"
    assert done[2][1]["messages"][-1].content == "40 yes Ada"
    assert RAN == ["asked", "asked", "asked", "paid"]
    saver.storage.clear()
    saver.writes.clear()
    for given, value, trace in done:
        assert "tool pay" in kinds(trace)
        again = replayed(turn(given), trace)
        assert again["messages"] == value["messages"]
    assert RAN == ["asked", "asked", "asked", "paid"]


def test_wrapped_streams_and_events() -> None:
    store = open_store(":memory:")
    graph = agentloom.wrap(shelf(sends=True), store=store)

    async def stream() -> Any:
        return [update async for update in graph.astream({"found": []}, stream_mode="updates")]

    updates = asyncio.run(stream())
    trace = Trace(store.read(store.runs()[0].run))
    ran = len(RAN)
    with agentloom.replaying(trace):
        assert asyncio.run(stream()) == updates
    assert len(RAN) == ran
