"""Sessions of OpenAI's Agents SDK on the real package: a history is read from the trace, and no database is touched."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, set_tracing_disabled
from openai import AsyncOpenAI

from agentloom.testing import FakeProvider
from tests.frameworks.proof import kinds, recorded, replayed

set_tracing_disabled(disabled=True)
# Programs of the SDK leave their clients, and the loop of run_sync, to the end of the process.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TURN = ["session.get_items", "session.add_items", "m", "session.add_items"]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    asyncio.set_event_loop(None)
    gc.collect()  # what the programs left behind, while its warnings are ignored


def agent_of(url: str) -> Agent[Any]:
    client = AsyncOpenAI(base_url=url, api_key="unused", max_retries=0)
    return Agent(name="shop", instructions="Sell.", model=OpenAIChatCompletionsModel("m", client))


def names(trace: Any) -> list[str]:
    return [call.name for call in trace.calls]


def asked(seen: Any) -> str:
    """Says how many messages it was asked with."""
    return f"{len(seen.body['messages'])} messages"


def test_a_history_in_memory() -> None:
    with FakeProvider(asked) as fake:

        async def agent() -> Any:
            session = SQLiteSession("s1")
            said = [
                (await Runner.run(agent_of(url), text, session=session)).final_output for text in ("a", "b")
            ]
            taken: Any = await session.pop_item()
            await session.clear_session()
            left = len(await session.get_items(limit=5))
            session.close()
            return said, taken and taken["content"], left

        url = fake.openai_url
        value, trace = recorded(agent)
    assert value[0] == ["2 messages", "4 messages"]
    assert value[2] == 0
    assert names(trace) == [*TURN, *TURN, "session.pop_item", "session.clear_session", "session.get_items"]
    first = trace.calls[1]
    assert (first.kind, first.effect) == ("memory", "write")
    assert first.request == {"session": "s1", "items": [{"role": "user", "content": "a"}]}
    assert replayed(agent, trace) == value


@pytest.mark.parametrize("opened_in_the_run", [False, True])
def test_a_conversation_in_a_file_replays_without_it(tmp_path: Path, opened_in_the_run: bool) -> None:
    place = tmp_path / "talk.db"
    before = None if opened_in_the_run else SQLiteSession("s1", place)

    async def agent() -> Any:
        session = before or SQLiteSession("s1", place)
        result = await Runner.run(agent_of(url), "again", session=session)
        if session is not before:
            session.close()
        return result.final_output, str(session.db_path)

    with FakeProvider(asked) as fake:
        url = fake.openai_url
        first, _ = recorded(agent)
        value, trace = recorded(agent)  # a later run goes on with what the first has left
    assert (first[0], value[0]) == ("2 messages", "4 messages")
    assert names(trace) == [*(["session.open"] if opened_in_the_run else []), *TURN]
    if before is not None:
        before.close()
    for one in tmp_path.iterdir():
        one.unlink()
    if before is not None:  # a closed session answers nothing itself
        with pytest.raises(RuntimeError, match="closed"):
            asyncio.run(before.get_items())
    assert replayed(agent, trace) == value
    assert list(tmp_path.iterdir()) == []


class Listed:
    """A session that has nothing of the SDK's, with one method that is not awaited."""

    session_settings: Any = None

    def __init__(self) -> None:
        self.session_id = "mine"
        self.items: list[Any] = []
        self.asked = 0

    def get_items(self, limit: int | None = None) -> Any:
        self.asked += 1
        return list(self.items)

    async def add_items(self, items: list[Any]) -> None:
        self.items += items

    async def pop_item(self) -> Any:
        return self.items.pop()

    async def clear_session(self) -> None:
        self.items.clear()


class Deeper(Listed):
    """Inherits all."""


@pytest.mark.parametrize("cls", [Listed, Deeper])
def test_a_session_of_ones_own(cls: type[Listed]) -> None:
    session: Any = cls()

    async def agent() -> Any:
        return (await Runner.run(agent_of(url), "a", session=session)).final_output

    with FakeProvider(asked) as fake:
        url = fake.openai_url
        value, trace = recorded(agent)
    assert names(trace) == TURN
    had, count = list(session.items), session.asked
    assert replayed(agent, trace) == value
    assert (session.items, session.asked) == (had, count)
    assert inspect.signature(session.get_items).parameters.keys() == {"limit"}


def test_streamed_and_sync() -> None:
    def agent() -> Any:
        session = SQLiteSession("s1")
        said = Runner.run_sync(agent_of(url), "a", session=session).final_output

        async def streamed() -> Any:
            result = Runner.run_streamed(agent_of(url), "b", session=session)
            kinds_of = [event.type async for event in result.stream_events()]
            return result.final_output, len(kinds_of)

        both = said, asyncio.run(streamed())
        session.close()
        return both

    with FakeProvider(asked) as fake:
        url = fake.openai_url
        value, trace = recorded(agent)
    assert value[0] == "2 messages"
    assert value[1][0] == "4 messages"
    assert kinds(trace).count("memory session.add_items") >= 4
    assert replayed(agent, trace) == value


def test_an_error_of_a_session_is_raised_again() -> None:
    class Gone(Listed):
        async def add_items(self, items: list[Any]) -> None:
            raise ConnectionError("no database")

    async def agent() -> Any:
        session: Any = Gone()
        try:
            await Runner.run(agent_of(url), "a", session=session)
        except ConnectionError as error:
            return str(error)

    with FakeProvider(asked) as fake:
        url = fake.openai_url
        value, trace = recorded(agent)
    assert value == "no database"
    assert replayed(agent, trace) == value
