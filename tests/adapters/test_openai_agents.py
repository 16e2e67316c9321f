"""Tools, turns and hand-offs of OpenAI's Agents SDK on the real package, against a scripted server."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    RunContextWrapper,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from agentloom.testing import FakeProvider, Says, Wants
from tests.frameworks.proof import both, kinds, recorded

set_tracing_disabled(disabled=True)
# Programs of the SDK leave their clients, and the loop of run_sync, to the end of the process.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield
    asyncio.set_event_loop(None)
    gc.collect()  # what the programs left behind, while its warnings are ignored


class Server:
    """Asks for ``wanted`` at once, then says what came of it."""

    def __init__(self, *wanted: tuple[str, dict[str, Any]]) -> None:
        self.wanted = wanted

    def __call__(self, seen: Any) -> Says:
        told = [str(message["content"]) for message in seen.body["messages"] if message["role"] == "tool"]
        offered = [tool["function"]["name"] for tool in seen.body.get("tools") or []]
        due = [Wants(name, args) for name, args in self.wanted if name in offered]
        return Says(tools=due) if due and not told else Says(" / ".join(told) or "hello")


def agent_of(url: str, **more: Any) -> Agent[Any]:
    client = AsyncOpenAI(base_url=url, api_key="unused", max_retries=0)
    model = OpenAIChatCompletionsModel(model="m", openai_client=client)
    return Agent(**{"name": "shop", "instructions": "Sell."} | more, model=model)


@function_tool
async def price(item: str) -> str:
    """A price."""
    RAN.append(item)
    await asyncio.sleep(0.001)
    return f"{item} costs {len(item)}"


@function_tool
def stock(item: str, count: int = 2) -> int:
    """How many there are."""
    RAN.append(item)
    return len(item) * count


@function_tool
def breaks(item: str) -> str:
    """Breaks."""
    RAN.append(item)
    raise LookupError(f"no {item}")


def run(wanted: list[tuple[str, dict[str, Any]]], **more: Any) -> tuple[Any, Any]:
    """Records and replays one run; its output and the trace."""
    with FakeProvider(Server(*wanted)) as fake:
        url = fake.openai_url

        async def agent() -> Any:
            return (await Runner.run(agent_of(url, **more), "q")).final_output

        return both(agent, RAN)


def test_tools_are_calls() -> None:
    value, trace = run([("price", {"item": "fig"}), ("stock", {"item": "pear"})], tools=[price, stock])
    assert value == "fig costs 3 / 8"
    assert sorted(kinds(trace)) == ["model m", "model m", "tool price", "tool stock"]
    asked = {call.name: call.request for call in trace.calls if call.kind == "tool"}
    assert asked == {"price": {"args": {"item": "fig"}}, "stock": {"args": {"item": "pear"}}}
    assert all("/shop[" in call.path for call in trace.calls)


def test_the_sdk_says_what_a_failed_tool_said() -> None:
    value, trace = run([("breaks", {"item": "fig"})], tools=[breaks])
    assert value.startswith("An error occurred while running the tool")
    failed = next(call for call in trace.calls if call.kind == "tool")
    assert type(failed.error) is LookupError
    assert str(failed.error) == "no fig"


def test_a_copied_tool_and_one_with_an_invoker_of_its_own() -> None:
    async def invoke(ctx: Any, arguments: str) -> str:
        RAN.append(arguments)
        return arguments

    own = FunctionTool("own", "Own.", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    assert own.on_invoke_tool is own.on_invoke_tool
    renamed = dataclasses.replace(price, name="cost")
    value, trace = run([("own", {"a": 1}), ("cost", {"item": "fig"})], tools=[own, renamed])
    assert value in {'{"a": 1} / fig costs 3', '{"a":1} / fig costs 3'}
    assert sorted(kinds(trace)) == ["model m", "model m", "tool cost", "tool own"]


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)


@function_tool
def add(context: RunContextWrapper[Cart], item: str) -> str:
    """Adds an item."""
    RAN.append(item)
    context.context.items.append(item)
    return f"{len(context.context.items)}"


def test_what_a_tool_changes_in_the_context_comes_back() -> None:
    with FakeProvider(Server(("add", {"item": "fig"}))) as fake:
        url = fake.openai_url

        async def agent() -> Any:
            cart = Cart()
            say = lambda context, agent: f"Cart: {context.context.items}"  # noqa: E731
            result = await Runner.run(agent_of(url, instructions=say, tools=[add]), "q", context=cart)
            return result.final_output, cart.items

        value, trace = both(agent, RAN)
    assert value == ("1", ["fig"])
    assert "Cart: ['fig']" in str(trace.calls[-1].request["messages"][0])


def test_a_hand_off_is_seen_in_the_paths() -> None:
    with FakeProvider(Server(("transfer_to_clerk", {}), ("price", {"item": "fig"}))) as fake:
        url = fake.openai_url

        async def agent() -> Any:
            clerk = agent_of(url, name="clerk", tools=[price])
            return (await Runner.run(agent_of(url, handoffs=[clerk]), "q")).last_agent.name

        value, trace = both(agent, RAN)
    assert value == "clerk"
    assert ["/clerk[" in call.path for call in trace.calls if call.kind == "model"][-1]


def test_an_agent_as_a_tool_is_structure() -> None:
    with FakeProvider(Server(("ask_clerk", {"input": "q"}), ("price", {"item": "fig"}))) as fake:
        url = fake.openai_url

        async def agent() -> Any:
            clerk = agent_of(url, name="clerk", tools=[price])
            asks = clerk.as_tool("ask_clerk", "Asks the clerk.")
            return (await Runner.run(agent_of(url, tools=[asks]), "q")).final_output

        value, trace = both(agent, RAN)
    assert value == "fig costs 3"
    assert kinds(trace) == ["model m", "model m", "tool price", "model m", "model m"]
    assert "/ask_clerk[0]/" in trace.calls[2].path


def test_streamed_and_sync() -> None:
    with FakeProvider(Server(("price", {"item": "fig"}), ("stock", {"item": "b"}))) as fake:
        url = fake.openai_url

        async def streamed() -> Any:
            result = Runner.run_streamed(agent_of(url, tools=[price, stock]), "q")
            return [event.type async for event in result.stream_events()], result.final_output

        value, trace = both(streamed, RAN)
        assert value[1] == "fig costs 3 / 2"
        assert kinds(trace).count("tool price") == 1

        def blocking() -> Any:
            asyncio.set_event_loop(asyncio.new_event_loop())
            return Runner.run_sync(agent_of(url, tools=[price, stock]), "q").final_output

        value, trace = both(blocking, RAN)
        assert value == "fig costs 3 / 2"
        assert sorted(kinds(trace)) == ["model m", "model m", "tool price", "tool stock"]


def test_without_a_run_nothing_is_changed() -> None:
    with FakeProvider(Server(("price", {"item": "fig"}))) as fake:
        recorded(lambda: 1)
        result = asyncio.run(Runner.run(agent_of(fake.openai_url, tools=[price]), "q"))
    assert result.final_output == "fig costs 3"
