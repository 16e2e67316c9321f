"""LangChain's tools and retrievers as host calls: on the real package, without a model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langgraph")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    create_retriever_tool,
    tool,
)
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.prebuilt import InjectedState, ToolNode, ToolRuntime
from langgraph.types import Command, Send
from pydantic import BaseModel, Field

from tests.frameworks.proof import both, kinds, recorded

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


class Address(BaseModel):
    street: str
    number: int


@dataclass
class Quote:
    item: str
    cents: int


@tool
def price(item: str, count: int = 1) -> str:
    """A price."""
    RAN.append(item)
    return f"{item} x{count}"


@tool
async def stock(item: str) -> int:
    """How many there are."""
    RAN.append(item)
    await asyncio.sleep(0.001)
    return len(item)


def test_a_tool_is_a_call_with_the_arguments_that_the_model_gave() -> None:
    value, trace = both(lambda: price.invoke({"item": "fig"}), RAN)
    assert value == "fig x1"
    assert kinds(trace) == ["tool price"]
    assert trace.calls[0].request == {"args": {"item": "fig", "count": 1}}
    assert trace.calls[0].effect == "write"


def test_awaited_tools_run_side_by_side() -> None:
    async def agent() -> Any:
        return await asyncio.gather(*(stock.ainvoke({"item": item}) for item in ("fig", "apple", "pear")))

    value, trace = both(agent, RAN)
    assert value == [3, 5, 4]
    assert kinds(trace) == ["tool stock"] * 3


def test_a_sync_tool_that_is_awaited_is_one_call() -> None:
    async def agent() -> Any:
        return await asyncio.gather(
            price.ainvoke({"item": "fig"}), price.ainvoke({"item": "kiwi", "count": 2})
        )

    value, trace = both(agent, RAN)
    assert value == ["fig x1", "kiwi x2"]
    assert kinds(trace) == ["tool price"] * 2


CALL = {"name": "price", "args": {"item": "fig"}, "id": "call_1", "type": "tool_call"}


def test_the_message_of_a_tool_call_is_made_again() -> None:
    value, trace = both(lambda: price.invoke(CALL), RAN)
    assert isinstance(value, ToolMessage)
    assert (value.content, value.tool_call_id, value.name, value.status) == (
        "fig x1",
        "call_1",
        "price",
        "success",
    )
    assert len(trace.calls) == 1


@tool(response_format="content_and_artifact")
def report(item: str) -> tuple[str, Quote]:
    """A report."""
    RAN.append(item)
    return f"about {item}", Quote(item, 120)


def test_an_artifact_comes_back_as_what_it_is() -> None:
    value, _ = both(lambda: report.invoke({**CALL, "name": "report"}), RAN)
    assert value.artifact == Quote("fig", 120)


@tool
def ship(where: Address, note: str | None = None) -> Address:
    """Ships something."""
    RAN.append(where)
    return Address(street=where.street.upper(), number=where.number + 1)


def test_models_as_arguments_and_results() -> None:
    value, _trace = both(lambda: ship.invoke({"where": {"street": "Main", "number": 1}}), RAN)
    assert value == Address(street="MAIN", number=2)
    assert isinstance(RAN[0], Address)


@tool
def fails(item: str) -> str:
    """Fails."""
    RAN.append(item)
    raise ToolException(f"no {item}")


@tool
def breaks(item: str) -> str:
    """Breaks."""
    RAN.append(item)
    raise KeyError(item)


@pytest.mark.parametrize(("broken", "error"), [(fails, ToolException), (breaks, KeyError)])
def test_errors_keep_type_and_message(broken: Any, error: type[Exception]) -> None:
    def agent() -> Any:
        try:
            broken.invoke({"item": "fig"})
        except error as raised:
            return type(raised).__name__, str(raised)

    value, trace = both(agent, RAN)
    assert value == (error.__name__, str(error("no fig" if error is ToolException else "fig")))
    assert kinds(trace) == [f"tool {broken.name}"]


def test_a_handler_of_errors_runs_again() -> None:
    handled = fails.model_copy(update={"handle_tool_error": lambda error: f"handled: {error}"})
    value, _ = both(lambda: handled.invoke(CALL | {"name": "fails"}), RAN)
    assert (value.content, value.status) == ("handled: no fig", "error")


def test_arguments_that_do_not_fit_reach_no_tool() -> None:
    def agent() -> Any:
        try:
            price.invoke({"count": "many"})
        except ValueError as raised:
            return str(raised).splitlines()[0]

    value, trace = both(agent, RAN)
    assert "2 validation errors for price" in value
    assert trace.calls == []
    assert RAN == []


class Wide(BaseTool):
    name: str = "wide"
    description: str = "A class of its own."
    metadata: dict[str, Any] | None = Field(default={"agentloom": "read"})

    def _run(self, question: str, config: RunnableConfig, run_manager: Any = None) -> str:
        RAN.append(config["metadata"]["user"])
        return f"{self.name}: {question}"


def test_a_tool_class_that_says_that_it_only_reads() -> None:
    value, trace = both(lambda: Wide().invoke({"question": "q"}, {"metadata": {"user": "Ada"}}), RAN)
    assert value == "wide: q"
    assert RAN == ["Ada"]
    assert trace.calls[0].request == {"args": {"question": "q"}}
    assert trace.calls[0].effect == "read"


def test_a_class_made_in_the_run() -> None:
    def agent() -> Any:
        class Late(Wide):
            name: str = "late"

            def _run(self, question: str, config: RunnableConfig, run_manager: Any = None) -> str:
                return super()._run(question, config) + "!"

        return Late().invoke({"question": "q"}, {"metadata": {"user": "Ada"}})

    value, trace = both(agent, RAN)
    assert value == "late: q!"
    assert kinds(trace) == ["tool late"]


def test_a_tool_of_one_text_and_one_without_arguments() -> None:
    def echo(text: str) -> str:
        RAN.append(text)
        return text * 2

    def now() -> str:
        RAN.append("now")
        return "noon"

    def agent() -> Any:
        one = Tool(name="echo", func=echo, description="Echo.")
        none = StructuredTool.from_function(now, description="Now.")
        return [one.invoke("ab"), one.run("cd"), none.invoke({})]

    value, trace = both(agent, RAN)
    assert value == ["abab", "cdcd", "noon"]
    assert [call.request["args"] for call in trace.calls] == [
        {"tool_input": ["ab"]},
        {"tool_input": ["cd"]},
        {},
    ]


class Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
        self.seen.append(f"start {serialized['name']}")

    def on_tool_end(self, output: Any, **more: Any) -> None:
        self.seen.append(f"end {output}")


def test_callbacks_see_the_tool_on_replay_too() -> None:
    def agent() -> Any:
        seen = Seen()
        price.invoke({"item": "fig"}, {"callbacks": [seen]})
        return seen.seen

    value, _ = both(agent, RAN)
    assert value == ["start price", "end fig x1"]


@tool
def injected(
    item: str,
    state: Annotated[dict[str, Any], InjectedState],
    call: Annotated[str, InjectedToolCallId],
    runtime: ToolRuntime,
    config: RunnableConfig,
) -> Command[Any]:
    """Changes the state."""
    RAN.append((item, state["open"], call, runtime.tool_call_id, bool(config)))
    message = ToolMessage(f"did {item}", tool_call_id=call)
    return Command(update={"messages": [message], "done": item}, goto=[Send("check", {"item": item}), "end"])


def test_what_langgraph_injects_is_no_part_of_the_record() -> None:
    from langgraph.graph import END, START, MessagesState, StateGraph

    class State(MessagesState):
        open: object
        done: str

    def ask(state: State) -> Any:
        return {
            "messages": [
                AIMessage("", tool_calls=[{"name": "injected", "args": {"item": "fig"}, "id": "c1"}])
            ]
        }

    def agent() -> Any:
        graph = StateGraph(State)
        graph.add_node("ask", ask)
        graph.add_node("tools", ToolNode([injected]))
        graph.add_node("check", lambda state: {"done": "checked " + state["item"]})
        graph.add_node("end", lambda state: {})
        graph.add_edge(START, "ask")
        graph.add_edge("ask", "tools")
        for last in ("check", "end"):
            graph.add_edge(last, END)
        result = graph.compile().invoke({"messages": [], "open": {"a": [object]}, "done": ""})
        return result["done"], [message.content for message in result["messages"]]

    value, trace = both(agent, RAN)
    assert value == ("checked fig", ["", "did fig"])
    assert RAN == [("fig", {"a": [object]}, "c1", "c1", True)]
    assert trace.calls[0].request == {"args": {"item": "fig"}}
    assert "/tools[0]" in trace.calls[0].id


@tool
def hands(item: str) -> Any:
    """Gives something that no trace can hold."""
    RAN.append(item)
    return [object]


def test_a_result_without_an_exact_form_is_given_on_and_told() -> None:
    value, trace = recorded(lambda: hands.invoke({"item": "fig"}) == [object])
    assert value is True
    assert RAN == ["fig"]
    assert "tool hands" in str(trace.unrecorded)
    report = trace.replay(call=lambda: hands.invoke({"item": "fig"}) == [object], check=False)
    assert report.verdict == "diverged"
    assert "hands" in str(report)
    assert RAN == ["fig"]


def test_without_a_run_a_tool_is_the_tool() -> None:
    assert price.invoke({"item": "fig"}) == "fig x1"
    assert RAN == ["fig"]


# -- retrievers ------------------------------------------------------------------------------------------------------


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query: str, **more: Any) -> list[Document]:
        RAN.append(query)
        return [Document(id=f"d{n}", page_content=f"{query} {n}", metadata={"page": n}) for n in range(2)]


def test_a_retriever_is_a_call_with_documents_and_ids() -> None:
    value, trace = both(lambda: Shelf().invoke("figs"), RAN)
    assert [(one.id, one.page_content) for one in value] == [("d0", "figs 0"), ("d1", "figs 1")]
    assert kinds(trace) == ["retrieve Shelf"]
    assert trace.calls[0].request == {"query": "figs"}
    assert isinstance(value[0], Document)


def test_an_awaited_retriever_is_one_call() -> None:
    async def agent() -> Any:
        return await Shelf().ainvoke("figs")

    _, trace = both(agent, RAN)
    assert kinds(trace) == ["retrieve Shelf"]


def shop() -> InMemoryVectorStore:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(id=name, page_content=name) for name in ("fig", "apple", "pear")])
    return store


@pytest.mark.parametrize("awaited", [False, True])
def test_a_vector_store_tells_scores(awaited: bool) -> None:
    store = shop()
    retriever = store.as_retriever(search_kwargs={"k": 2})

    async def later() -> Any:
        return await retriever.ainvoke("fig")

    value, trace = both(later if awaited else lambda: retriever.invoke("fig"), RAN)
    assert value[0].id == "fig"
    assert trace.calls[0].request == {"query": "fig", "search": {"type": "similarity", "k": 2}}
    outcome: Any = trace.calls[0].result
    assert outcome.scores[0] == pytest.approx(1.0)
    assert len(outcome.documents) == 2


def test_a_tool_that_only_asks_a_retriever_is_structure() -> None:
    asks = create_retriever_tool(Shelf(), "search", "Search the shelf.")
    value, trace = both(lambda: asks.invoke({"query": "figs"}), RAN)
    assert value == "figs 0\n\nfigs 1"
    assert kinds(trace) == ["retrieve Shelf"]
    assert trace.calls[0].id.endswith("/search[0]#1")


def test_a_filter_that_is_a_function_is_no_part_of_the_record() -> None:
    retriever = shop().as_retriever(search_kwargs={"filter": lambda one: one.id != "fig"})
    value, trace = both(lambda: retriever.invoke("fig"), RAN)
    assert {one.id for one in value} == {"apple", "pear"}
    assert trace.calls[0].request == {"query": "fig"}
