# mypy: ignore-errors
"""LlamaIndex's tools, retrievers and steps, on the packages that ``python -m tests.frameworks.table`` installs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="NOT TESTED: python -m tests.frameworks.table installs it")

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from tests.frameworks.proof import both, kinds

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def price(item: str, count: int = 1) -> str:
    """A price."""
    RAN.append(item)
    await asyncio.sleep(0.001)
    return f"{item} x{count}"


def stock(item: str) -> int:
    """How many there are."""
    RAN.append(item)
    return len(item)


def breaks(item: str) -> str:
    """Breaks."""
    RAN.append(item)
    raise LookupError(f"no {item}")


def test_tools_side_by_side() -> None:
    async def agent() -> Any:
        tools = [FunctionTool.from_defaults(async_fn=price), FunctionTool.from_defaults(fn=stock)]
        found = await asyncio.gather(*(one.acall(item="fig") for one in tools))
        return [(one.content, one.raw_output, one.tool_name) for one in found]

    value, trace = both(agent, RAN)
    assert value == [("fig x1", "fig x1", "price"), ("3", 3, "stock")]
    assert sorted(kinds(trace)) == ["tool price", "tool stock"]
    asked = next(call for call in trace.calls if call.name == "stock")
    assert asked.request == {"args": {"item": "fig"}}


def test_a_tool_that_is_called() -> None:
    made = FunctionTool.from_defaults(fn=stock)
    value, trace = both(lambda: [made(item="fig").raw_output, made.call("pear").raw_output], RAN)
    assert value == [3, 4]
    assert [call.request["args"] for call in trace.calls] == [{"item": "fig"}, {"arguments": ["pear"]}]


def test_errors_keep_type_and_message() -> None:
    def agent() -> Any:
        try:
            FunctionTool.from_defaults(fn=breaks).call(item="fig")
        except LookupError as error:
            return str(error)

    value, _ = both(agent, RAN)
    assert value == "no fig"


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        RAN.append(query_bundle.query_str)
        return [NodeWithScore(node=TextNode(id_="d0", text="figs", metadata={"page": 1}), score=0.5)]


@pytest.mark.parametrize("awaited", [False, True])
def test_a_retriever_tells_nodes_ids_and_scores(awaited: bool) -> None:
    async def later() -> Any:
        return await Shelf().aretrieve("figs")

    value, trace = both(later if awaited else lambda: Shelf().retrieve("figs"), RAN)
    assert [(one.node_id, one.score, one.text, one.metadata) for one in value] == [
        ("d0", 0.5, "figs", {"page": 1})
    ]
    assert kinds(trace) == ["retrieve Shelf"]
    assert trace.calls[0].request == {"query": "figs"}


def test_an_index_and_a_tool_that_only_asks_it() -> None:
    nodes = [TextNode(id_=name, text=f"about {name}") for name in ("fig", "apple")]
    shelf = VectorStoreIndex(nodes, embed_model=MockEmbedding(4)).as_retriever(similarity_top_k=1)
    asks = RetrieverTool.from_defaults(shelf, name="search", description="Search.")
    value, trace = both(lambda: [shelf.retrieve("fig")[0].node_id, asks.call("fig").content], RAN)
    assert value[0] in ("fig", "apple")
    assert kinds(trace) == ["retrieve VectorIndexRetriever"] * 2
    assert trace.calls[0].request == {"query": "fig", "top_k": 1}


class Part(Event):
    item: str


class Found(Event):
    text: str


class Shop(Workflow):
    @step
    async def start(self, context: Context, event: StartEvent) -> Part | None:
        for item in ("fig", "apple", "pear"):
            context.send_event(Part(item=item))
        return None

    @step(num_workers=3)
    async def look(self, context: Context, event: Part) -> Found:
        tool = FunctionTool.from_defaults(async_fn=price)
        return Found(text=(await tool.acall(item=event.item)).content)

    @step
    async def gather(self, context: Context, event: Found) -> StopEvent | None:
        found = context.collect_events(event, [Found] * 3)
        return None if found is None else StopEvent(result=[one.text for one in found])


def test_steps_are_seen_in_the_paths() -> None:
    async def agent() -> Any:
        handler = Shop().run()
        events = [type(event).__name__ async for event in handler.stream_events()]
        return events, await handler

    value, trace = both(agent, RAN)
    assert sorted(value[1]) == ["apple x1", "fig x1", "pear x1"]
    assert kinds(trace) == ["tool price"] * 3
    assert all("/look[0]" in call.path for call in trace.calls)


async def keep(ctx: Context, item: str) -> str:
    """Keeps something in the workflow's state."""
    RAN.append("kept")
    await ctx.store.set("item", item)
    return (await FunctionTool.from_defaults(async_fn=price).acall(item=item)).content


class Keeping(Workflow):
    @step
    async def only(self, context: Context, event: StartEvent) -> StopEvent:
        said = await FunctionTool.from_defaults(async_fn=keep).acall(ctx=context, item="fig")
        return StopEvent(result=[said.content, await context.store.get("item")])


def test_a_tool_with_the_workflows_context_is_code_of_the_workflow() -> None:
    async def agent() -> Any:
        result = await Keeping().run()
        RAN.remove("kept")
        return result

    value, trace = both(agent, RAN)
    assert value == ["fig x1", "fig"]
    assert kinds(trace) == ["tool price"]
    assert "/keep[0]" in trace.calls[0].path
