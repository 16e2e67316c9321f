"""pydantic-ai's tools and runs on the real package; the model is a function."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from tests.frameworks.proof import both, kinds, recorded

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def model(*wanted: tuple[str, dict[str, Any]]) -> FunctionModel:
    """Asks for ``wanted`` tools at once, then says what came of them."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        returned = [
            part for part in parts if isinstance(part, ToolReturnPart) and "not yet" not in str(part.content)
        ]
        if len(returned) < len(wanted):
            done = {part.tool_call_id for part in returned}
            calls = [ToolCallPart(name, args, f"c{n}") for n, (name, args) in enumerate(wanted)]
            return ModelResponse([call for call in calls if call.tool_call_id not in done])
        return ModelResponse([TextPart(" / ".join(str(part.content) for part in returned))])

    return FunctionModel(answer)


class Address(BaseModel):
    street: str


async def price(item: str) -> str:
    RAN.append(item)
    await asyncio.sleep(0.001)
    return f"{item} costs {len(item)}"


def stock(item: str, *, where: Address | None = None) -> Address:
    RAN.append(item)
    return Address(street=f"{item} at {where.street if where else 'home'}")


def test_async_and_sync_tools_side_by_side() -> None:
    async def agent() -> Any:
        asked = model(
            ("price", {"item": "fig"}),
            ("stock", {"item": "pear", "where": {"street": "Main"}}),
            ("price", {"item": "a"}),
        )
        result = await Agent(asked, tools=[price, stock], name="shop").run("q")
        return result.output

    value, trace = both(agent, RAN)
    assert value == "fig costs 3 / street='pear at Main' / a costs 1"
    assert sorted(kinds(trace)) == ["tool price", "tool price", "tool stock"]
    assert all("/shop[0]/" in call.path + "/" for call in trace.calls)
    asked = next(call for call in trace.calls if call.name == "stock")
    assert asked.request == {"args": {"item": "pear", "where": Address(street="Main")}}
    assert asked.effect == "write"


def test_the_name_is_that_of_the_variable() -> None:
    async def agent() -> Any:
        clerk = Agent(model(("price", {"item": "fig"})), tools=[price])
        async with clerk.iter("q") as run:
            async for _ in run:
                pass
        assert clerk.name == "clerk"
        return run.result.output if run.result else None

    _, trace = both(agent, RAN)
    assert "/clerk[0]" in trace.calls[0].path


@dataclass
class Deps:
    """What tools and agent share."""

    user: str
    cart: list[str] = field(default_factory=list)
    client: Any = None


def test_what_a_tool_changes_in_the_dependencies_comes_back() -> None:
    async def agent() -> Any:
        shop = Agent(model(("add", {"item": "fig"}), ("add", {"item": "pear"})), deps_type=Deps)

        @shop.tool
        async def add(context: RunContext[Deps], item: str) -> int:
            RAN.append(item)
            context.deps.cart.append(item)
            return len(context.deps.cart)

        deps = Deps("Ada", client=object())
        await shop.run("q", deps=deps)
        return sorted(deps.cart)

    value, trace = both(agent, RAN)
    assert value == ["fig", "pear"]
    assert [call.request for call in trace.calls] == [{"args": {"item": "fig"}}, {"args": {"item": "pear"}}]


def test_a_tool_that_wants_another_try() -> None:
    async def agent() -> Any:
        shop = Agent(model(("add", {"item": "fig"})), retries=2)

        @shop.tool_plain
        def add(item: str) -> str:
            RAN.append(item)
            if len(RAN) < 2:
                raise ModelRetry(f"not yet {item}")
            return "added"

        return (await shop.run("q")).output

    value, trace = both(agent, RAN)
    assert value == "added"
    assert [call.status for call in trace.calls] == ["error", "ok"]
    assert str(trace.calls[0].error) == "not yet fig"
    assert type(trace.calls[0].error) is ModelRetry


def test_an_error_that_ends_the_run() -> None:
    async def agent() -> Any:
        shop = Agent(model(("add", {"item": "fig"})))

        @shop.tool_plain
        def add(item: str) -> str:
            RAN.append(item)
            raise LookupError(f"no {item}")

        try:
            await shop.run("q")
        except LookupError as error:
            return str(error)

    value, _ = both(agent, RAN)
    assert value == "no fig"


def test_a_result_with_metadata() -> None:
    async def agent() -> Any:
        def add(item: str) -> ToolReturn:
            RAN.append(item)
            return ToolReturn(return_value=f"got {item}", content=["see", item], metadata={"n": 1})

        result = await Agent(model(("add", {"item": "fig"})), tools=[add]).run("q")
        metadata = [
            part.metadata
            for message in result.all_messages()
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        return result.output, metadata

    value, trace = both(agent, RAN)
    assert value == ("got fig", [{"n": 1}])
    assert kinds(trace) == ["tool add"]


def test_a_tool_that_says_what_it_does() -> None:
    async def agent() -> Any:
        shelf = FunctionToolset([Tool(price, metadata={"agentloom": "read"})])
        return (await Agent(model(("price", {"item": "fig"})), toolsets=[shelf]).run("q")).output

    _, trace = both(agent, RAN)
    assert trace.calls[0].effect == "read"


def test_a_tool_whose_code_is_an_agent() -> None:
    async def agent() -> Any:
        checker = Agent(model(("price", {"item": "fig"})), tools=[price], name="checker")

        async def check(item: str) -> str:
            return (await checker.run(item)).output

        shop = Agent(
            model(("check", {"item": "fig"})),
            tools=[Tool(check, metadata={"agentloom": "agent"})],
            name="shop",
        )
        return (await shop.run("q")).output

    value, trace = both(agent, RAN)
    assert value == "fig costs 3"
    assert kinds(trace) == ["tool price"]
    assert [part for part in trace.calls[0].path.split("/") if "task" not in part][2:] == [
        "shop[0]",
        "check[0]",
        "checker[0]",
    ]


def test_an_agent_in_a_tool_that_does_not_say_so_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def agent() -> Any:
        inner = Agent(model(), name="inner")

        async def ask_inner(item: str) -> str:
            return (await inner.run(item)).output

        return (await Agent(model(("ask_inner", {"item": "fig"})), tools=[ask_inner]).run("q")).output

    both(agent, RAN)
    assert "tool ask_inner ran inner itself" in caplog.text


def test_another_word_is_an_error() -> None:
    async def agent() -> Any:
        wrong = Tool(price, metadata={"agentloom": "reads"})
        return await Agent(model(("price", {"item": "fig"})), tools=[wrong]).run("q")

    value, _ = recorded(agent)
    assert isinstance(value, ValueError)
    assert "an effect is one of agent, pure, read, write" in str(value)


@pytest.fixture
def loop_of_the_thread() -> Iterator[None]:
    """The loop that ``run_sync`` takes: one that it makes is left to the end of the process."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("loop_of_the_thread")
def test_run_sync_in_a_sync_run() -> None:
    def agent() -> Any:
        return (
            Agent(model(("price", {"item": "fig"}), ("stock", {"item": "b"})), tools=[price, stock])
            .run_sync("q")
            .output
        )

    value, trace = both(agent, RAN)
    assert value == "fig costs 3 / street='b at home'"
    assert sorted(kinds(trace)) == ["tool price", "tool stock"]
