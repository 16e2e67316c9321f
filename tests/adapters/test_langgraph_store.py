"""LangGraph's stores (long-term memory) on the real package: in nodes, in tools, sync and async."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore, ToolNode
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchItem
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore

from tests.frameworks.proof import both, kinds, recorded, replayed

RAN: list[Any] = []
USER = ("users", "ann")


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


class State(MessagesState):
    said: str


def one_node(node: Any, store: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(store=store)


def full() -> InMemoryStore:
    store = InMemoryStore(index={"dims": 8, "embed": DeterministicFakeEmbedding(size=8)})
    store.put(USER, "food", {"likes": "figs", "when": 3})
    store.put((*USER, "old"), "city", {"lives": "Ürüm"})
    return store


def facts(item: Any) -> Any:
    return item and [
        type(item).__name__,
        item.namespace,
        item.key,
        item.value,
        item.created_at <= item.updated_at,
    ]


def uses(store: BaseStore) -> Any:
    store.put(USER, "drink", {"likes": "tea"}, index=False)
    found = store.search(("users",), query="figs", filter={"likes": "figs"}, limit=2)
    before = [facts(store.get(USER, name)) for name in ("food", "drink", "none")]
    store.delete(USER, "drink")
    spaces = store.list_namespaces(prefix=("users",))
    several = store.batch(iter([GetOp(USER, "food"), PutOp(USER, "n", {"a": 1}), GetOp(USER, "n")]))
    return (
        [facts(one) for one in found],
        [one.score for one in found],
        before,
        spaces,
        [facts(one) for one in several],
    )


async def uses_awaited(store: BaseStore) -> Any:
    await store.aput(USER, "drink", {"likes": "tea"}, index=False)
    found = await store.asearch(("users",), query="figs", filter={"likes": "figs"}, limit=2)
    names = ("food", "drink", "none")
    before = [facts(one) for one in await asyncio.gather(*(store.aget(USER, name) for name in names))]
    await store.adelete(USER, "drink")
    spaces = await store.alist_namespaces(prefix=("users",))
    several = await store.abatch([GetOp(USER, "food"), PutOp(USER, "n", {"a": 1}), GetOp(USER, "n")])
    return (
        [facts(one) for one in found],
        [one.score for one in found],
        before,
        spaces,
        [facts(one) for one in several],
    )


@pytest.mark.parametrize("awaited", [False, True])
def test_each_method_is_a_call_and_is_as_bare(awaited: bool) -> None:
    """Nodes get the store from LangGraph; on replay the store is empty, and is left so."""
    kept = {"store": full()}

    def call() -> Any:
        return one_node(lambda state, *, store: {"said": repr(uses(store))}, kept["store"]).invoke(
            {"said": ""}
        )["said"]

    async def later() -> Any:
        async def node(state: State, *, store: BaseStore) -> Any:
            return {"said": repr(await uses_awaited(store))}

        return (await one_node(node, kept["store"]).ainvoke({"said": ""}))["said"]

    bare = asyncio.run(later()) if awaited else call()
    kept["store"] = full()
    value, trace = recorded(later if awaited else call)
    assert value == bare
    assert "'food', {'likes': 'figs', 'when': 3}" in bare
    assert sorted(kinds(trace)) == sorted(
        ["memory store.put", "memory store.search", *["memory store.get"] * 3, "memory store.delete",
         "memory store.list_namespaces", "memory store.batch"]
    )  # fmt: skip
    effects = {call.name: call.effect for call in trace.calls}
    assert [name for name, effect in effects.items() if effect == "write"] == [
        "store.put",
        "store.delete",
        "store.batch",
    ]
    put = next(call for call in trace.calls if call.name == "store.put")
    assert put.request == {"namespace": USER, "key": "drink", "value": {"likes": "tea"}, "index": False}
    assert "/node[0]" in put.id
    empty = kept["store"] = InMemoryStore()
    assert replayed(later if awaited else call, trace) == bare
    assert empty.list_namespaces() == []


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_batch_may_come_from_an_iterator(awaited: bool, named: bool) -> None:
    """It is read once, however it is given: what is written down of it is done, too."""
    kept = {"store": InMemoryStore()}

    def given() -> Any:
        ops = iter([PutOp(USER, "n", {"a": 1}), GetOp(USER, "food")])
        return ((), {"ops": ops}) if named else ((ops,), {})

    def call() -> Any:
        args, options = given()
        return [facts(one) for one in kept["store"].batch(*args, **options)]

    async def later() -> Any:
        args, options = given()
        return [facts(one) for one in await kept["store"].abatch(*args, **options)]

    value, trace = recorded(later if awaited else call)
    assert value == [None, None]
    assert kept["store"].get(USER, "n") is not None
    assert [one["op"] for one in trace.calls[0].request["ops"]] == ["PutOp", "GetOp"]
    kept["store"] = InMemoryStore()
    assert replayed(later if awaited else call, trace) == value
    assert kept["store"].get(USER, "n") is None


@tool
def remember(what: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Remembers something."""
    RAN.append(what)
    store.put(USER, "told", {"what": what})
    return f"remembered {what}"


def told(store: BaseStore) -> Any:
    def ask(state: State) -> Any:
        wanted = {"name": "remember", "args": {"what": "figs"}, "id": "c1"}
        return {"messages": [AIMessage("", tool_calls=[wanted])]}

    def look(state: State, *, store: BaseStore) -> Any:
        item = store.get(USER, "told")
        return {"said": "" if item is None else item.value["what"]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([remember]))
    graph.add_node("look", look)
    for before, after in ((START, "ask"), ("ask", "tools"), ("tools", "look"), ("look", END)):
        graph.add_edge(before, after)
    return graph.compile(store=store)


@pytest.mark.parametrize("awaited", [False, True])
def test_in_a_tool_it_is_part_of_the_tool_and_read_again_from_the_trace(awaited: bool) -> None:
    def call() -> Any:
        return told(InMemoryStore()).invoke({"messages": [], "said": ""})["said"]

    async def later() -> Any:
        return (await told(InMemoryStore()).ainvoke({"messages": [], "said": ""}))["said"]

    value, trace = both(later if awaited else call, RAN)
    assert value == "figs"
    assert RAN == ["figs"]
    assert kinds(trace) == ["tool remember", "memory store.get"]
    assert trace.calls[0].request == {"args": {"what": "figs"}}


def test_in_a_tool_whose_code_is_the_agents_it_is_a_call() -> None:
    value, trace = recorded(
        lambda: told(InMemoryStore()).invoke({"messages": [], "said": ""})["said"],
        tools={"remember": "agent"},
    )
    assert value == "figs"
    assert kinds(trace) == ["memory store.put", "memory store.get"]
    assert "/remember[0]" in trace.calls[0].id


@dataclass
class Own:
    """No trace knows this type; LangGraph's serializer does."""

    text: str


def test_a_value_without_an_exact_form_comes_back() -> None:
    def call() -> Any:
        store = InMemoryStore()
        store.put(USER, "own", {"own": Own("o"), "plain": 1})
        item = store.get(USER, "own")
        return None if item is None else (item.value["own"].text, item.value["plain"])

    value, trace = recorded(call)
    assert value == ("o", 1)
    assert replayed(call, trace) == ("o", 1)


class Broken(InMemoryStore):
    """A store whose database is gone."""

    def get(self, namespace: tuple[str, ...], key: str, **options: Any) -> Any:
        raise ConnectionError(f"no database for {key}")


def test_an_error_of_a_store_is_raised_again() -> None:
    def call() -> Any:
        try:
            return Broken().get(USER, "k")
        except ConnectionError as error:
            return str(error)

    value, trace = recorded(call)
    assert value == "no database for k"
    assert replayed(call, trace) == value
    assert [one.status for one in trace.calls] == ["error"]


class Batched(AsyncBatchedBaseStore):
    """A store that gathers its calls in a task of the loop that it was made on, as those of databases do."""

    def __init__(self) -> None:
        super().__init__()
        self.below = InMemoryStore()

    def batch(self, ops: Any) -> Any:
        return self.below.batch(ops)

    async def abatch(self, ops: Any) -> Any:
        RAN.append(len(list(ops)))
        return await self.below.abatch(ops)


def test_a_store_that_gathers_calls_on_the_loop_around_the_run() -> None:
    import agentloom
    from agentloom import Trace
    from agentloom.store import open_store

    async def agent(store: BaseStore) -> Any:
        await store.aput(USER, "k", {"v": 1})
        item = await store.aget(USER, "k")
        return item and item.value

    kept = open_store(":memory:")

    async def main() -> Any:
        return await agentloom.record(agent(Batched()), store=kept)

    assert asyncio.run(main()) == {"v": 1}
    trace = Trace(kept.read(kept.runs()[0].run))
    assert kinds(trace) == ["memory store.put", "memory store.get"]

    async def again() -> Any:
        return await agent(InMemoryStore())

    assert replayed(again, trace) == {"v": 1}


def test_a_store_that_gathers_calls_and_is_made_in_the_run() -> None:
    async def agent() -> Any:
        store = Batched()
        await store.aput(USER, "k", {"v": 1})
        item = await store.aget(USER, "k")
        return item and item.value

    value, trace = both(agent, RAN)
    assert value == {"v": 1}
    assert kinds(trace) == ["memory store.batch", "memory store.batch"]


def test_without_a_run_a_store_is_the_store() -> None:
    store = InMemoryStore()
    store.put(USER, "k", {"v": 1})
    assert type(store.search(USER)[0]) is SearchItem
