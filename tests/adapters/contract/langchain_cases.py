# mypy: ignore-errors
"""LangChain's chat models, and a LangGraph agent with a tool, asked in each way that a program can."""

from __future__ import annotations

import asyncio
import contextlib
import operator
from collections.abc import Iterator
from typing import Annotated, Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from agentloom.testing import Drops, Says
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import headers_seen, seen
from tests.adapters.contract.common import BUSY, HTML, SLOW
from tests.adapters.contract.shop import NOTHING, TEXT, TOOLS, TWICE, problem

PARTS = ("text", "tool_calls", "usage_metadata", "response_metadata", "additional_kwargs", "name")


@contextlib.contextmanager
def model(url: str, **options: Any) -> Iterator[ChatOpenAI]:
    made = ChatOpenAI(
        model="m",
        base_url=url + "/v1",
        api_key="unused",
        **{"max_retries": 0, "stream_usage": True, **options},
    )
    yield made  # LangChain shares clients among models: none is closed


@contextlib.asynccontextmanager
async def amodel(url: str, **options: Any) -> Any:
    with model(url, **options) as made:
        yield made


def facts(message: BaseMessage) -> Any:
    """All of a message but the ids that LangChain draws itself."""
    held = {name: getattr(message, name, None) for name in PARTS}
    held["text"] = str(held["text"])
    if headers := held["response_metadata"].get("headers"):
        held["response_metadata"] = held["response_metadata"] | {"headers": headers_seen(headers.items())}
    fields = sorted(message.model_fields_set - {"id"})
    return [type(message).__name__, seen(message.content), seen(held), fields]


def whole(url: str) -> Any:
    with model(url) as m:
        batch = [facts(one) for one in m.batch(["a", "b"], config={"max_concurrency": 1})]
        return [facts(m.bind_tools([price]).invoke("hello")), *batch]


async def whole_async(url: str) -> Any:
    async with amodel(url) as m:
        return [facts(await m.bind_tools([price]).ainvoke("hello")), facts(await m.ainvoke("b"))]


def stream(url: str) -> Any:
    with model(url) as m:
        return [facts(one) for one in m.stream("hello")]


async def stream_async(url: str) -> Any:
    async with amodel(url) as m:
        kinds = [one["event"] async for one in m.astream_events("hello", version="v2")]
        return kinds, [facts(one) async for one in m.bind_tools([price]).astream("hello")]


def early(url: str) -> Any:
    with model(url) as m, contextlib.closing(m.stream("hello")) as chunks:
        return facts(next(chunks))


async def early_async(url: str) -> Any:
    async with amodel(url) as m, contextlib.aclosing(m.astream("hello")) as chunks:
        async for one in chunks:
            return facts(one)
    return None


def failing(url: str) -> Any:
    found: list[Any] = []
    with model(url) as m:
        for ask in (m.invoke, m.invoke, lambda text: [facts(one) for one in m.stream(text)], m.invoke):
            try:
                found.append(seen(str(ask("hello"))))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
                found.append(problem(error))
    return found


async def failing_async(url: str) -> Any:
    found: list[Any] = []
    async with amodel(url) as m:
        for _ in range(3):
            try:
                found.append(seen(str(await m.ainvoke("hello"))))
            except Exception as error:  # noqa: BLE001 - as above
                found.append(problem(error))
    return found


def retried(url: str) -> Any:
    with model(url, max_retries=2) as m:
        return facts(m.invoke("hello"))


async def retried_async(url: str) -> Any:
    async with amodel(url) as m:  # LangChain's own tries, with waits that it draws
        tried = m.with_retry(stop_after_attempt=3, exponential_jitter_params={"initial": 0.3, "max": 0.35})
        return facts(await tried.ainvoke("hello"))


async def cancelled(url: str) -> Any:
    async with amodel(url) as m:
        try:
            await asyncio.wait_for(m.ainvoke("hello"), 0.7)
        except TimeoutError:
            return facts(await m.ainvoke("hello"))
    return "no timeout"


def raw(url: str) -> Any:
    with model(url, include_response_headers=True) as m:
        asked = m.with_structured_output({"title": "T", "description": "d", "type": "object", "properties": {}},
                                         method="json_mode", include_raw=True)  # fmt: skip
        made = asked.invoke("hello")
        return (
            facts(m.invoke("hello")),
            facts(made["raw"]),
            seen(made["parsed"]),
            made["parsing_error"] is None,
        )


@tool
def price(item: str) -> str:
    """The price of an item."""
    if item == "nothing":
        raise LookupError("no such item")
    return f"{item} costs {len(item)}"


class State(MessagesState):
    visited: Annotated[list[str], operator.add]


def graph(m: ChatOpenAI, *, awaited: bool) -> Any:
    bound = m.bind_tools([price])

    def ask(state: State) -> Any:
        return {"messages": [bound.invoke(state["messages"])], "visited": ["ask"]}

    async def ask_awaited(state: State) -> Any:
        return {"messages": [await bound.ainvoke(state["messages"])], "visited": ["ask"]}

    made = StateGraph(State)
    made.add_node("ask", ask_awaited if awaited else ask)
    made.add_node("tools", ToolNode([price], handle_tool_errors=False))
    made.add_edge(START, "ask")
    made.add_conditional_edges("ask", tools_condition)
    made.add_edge("tools", "ask")
    return made.compile()


def asked() -> Any:
    return {"messages": [HumanMessage("what do they cost?")], "visited": []}


def states(result: Any) -> Any:
    return [facts(one) for one in result["messages"]], result.get("visited")


def graph_whole(url: str) -> Any:
    with model(url) as m:
        return states(graph(m, awaited=False).invoke(asked()))


async def graph_whole_async(url: str) -> Any:
    async with amodel(url) as m:
        return states(await graph(m, awaited=True).ainvoke(asked()))


def part(kind: str, what: Any) -> Any:
    if kind == "messages":
        return [kind, facts(what[0]), what[1]["langgraph_node"]]
    return [kind, {node: states(update) for node, update in what.items()}]


def graph_stream(url: str) -> Any:
    with model(url) as m:
        chunks = graph(m, awaited=False).stream(asked(), stream_mode=["updates", "messages"])
        return [part(*one) for one in chunks]


async def graph_stream_async(url: str) -> Any:
    async with amodel(url) as m:
        made = graph(m, awaited=True)
        return [part(*one) async for one in made.astream(asked(), stream_mode=["updates", "messages"])]


def graph_early(url: str) -> Any:
    with (
        model(url) as m,
        contextlib.closing(graph(m, awaited=False).stream(asked(), stream_mode=["updates"])) as left,
    ):
        return part(*next(left))


async def graph_early_async(url: str) -> Any:
    async with amodel(url) as m:
        made = graph(m, awaited=True)
        async with contextlib.aclosing(made.astream(asked(), stream_mode=["updates"])) as left:
            async for one in left:
                return part(*one)
    return None


def graph_failing(url: str) -> Any:
    found: list[Any] = []
    with model(url) as m:
        for _ in range(2):  # the model's error, then the tool's
            try:
                found.append(states(graph(m, awaited=False).invoke(asked())))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
                found.append(problem(error))
    return found


def graph_retried(url: str) -> Any:
    from langgraph.types import RetryPolicy

    with model(url) as m:
        made = StateGraph(State)
        policy = RetryPolicy(initial_interval=0.3, backoff_factor=1, jitter=True, retry_on=lambda error: True)
        made.add_node("ask", lambda state: {"messages": [m.invoke(state["messages"])]}, retry_policy=policy)
        made.add_edge(START, "ask")
        return states(made.compile().invoke(asked()))


async def graph_cancelled(url: str) -> Any:
    async with amodel(url) as m:
        made = graph(m, awaited=True)
        try:
            await asyncio.wait_for(made.ainvoke(asked()), 0.7)
        except TimeoutError:
            return states(await made.ainvoke(asked()))
    return "no timeout"


SEAMS = [
    Seam(
        "LangChain (OpenAI)",
        [
            Case("sync", whole, [TOOLS, TEXT, TEXT]),
            Case("async", whole_async, [TOOLS, TEXT], ["model"] * 2),
            Case("stream", stream, [TEXT], ["model"]),
            Case("stream", stream_async, [TEXT, TOOLS], ["model"] * 2),
            Case("left early", early, [TEXT], ["model"]),
            Case("left early", early_async, [TEXT], ["model"]),
            Case("error", failing, [BUSY, HTML, Says("a b c", break_after=2), Drops()], ["model"] * 4),
            Case("error", failing_async, [BUSY, HTML, Drops()], ["model"] * 3),
            Case("retry", retried, [BUSY, BUSY, TEXT], ["model", "sleep"] * 2 + ["model"]),
            Case("retry", retried_async, [BUSY, Drops(), TEXT], ["model"] * 3, "LangChain's own", waits=True),
            Case("cancel", cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
            Case("raw", raw, [Says("{}"), Says("{}")], ["model"] * 2),
        ],
    ),
    Seam(
        "LangGraph",
        [
            Case("sync", graph_whole, [TOOLS, TEXT], TWICE),
            Case("async", graph_whole_async, [TOOLS, TEXT], TWICE),
            Case("stream", graph_stream, [TOOLS, TEXT], TWICE),
            Case("stream", graph_stream_async, [TOOLS, TEXT], TWICE),
            Case("left early", graph_early, [TOOLS, TEXT]),
            Case("left early", graph_early_async, [TOOLS, TEXT]),
            Case("error", graph_failing, [BUSY, NOTHING], ["model", "model", "tool"]),
            Case("retry", graph_retried, [BUSY, BUSY, TEXT], waits=True),
            Case("cancel", graph_cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
        ],
        lacks={"raw": "a graph has no responses of its own"},
    ),
]
