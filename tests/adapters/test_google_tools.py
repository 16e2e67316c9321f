"""Functions that google-genai calls by itself, against a scripted server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("google.genai")

from google import genai
from google.genai import types

from agentloom.testing import FakeProvider, Says, Wants
from tests.frameworks.proof import both, kinds

RAN: list[Any] = []
# The SDK leaves its clients to the end of the process.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def price(item: str) -> str:
    """The price of an item."""
    RAN.append(item)
    return f"{item} costs {len(item)}"


async def stock(item: str) -> int:
    """How many there are."""
    RAN.append(item)
    await asyncio.sleep(0.001)
    return len(item)


def breaks(item: str) -> str:
    """Breaks."""
    RAN.append(item)
    raise LookupError(f"no {item}")


def told(seen: Any) -> Any:
    """Asks for each function on offer, then says what they gave."""
    parts = [part for content in seen.body["contents"] for part in content["parts"]]
    given = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    offered = [one["name"] for tool in seen.body.get("tools") or [] for one in tool["functionDeclarations"]]
    if given:
        return Says(" / ".join(str(one.get("result", one.get("error"))) for one in given))
    return Says(tools=[Wants(name, {"item": "fig"}) for name in offered])


@pytest.mark.parametrize("awaited", [False, True])
def test_functions_are_tools(awaited: bool) -> None:
    with FakeProvider(told) as fake:
        options = types.HttpOptions(base_url=fake.google_url)

        def call() -> Any:
            client = genai.Client(api_key="unused", http_options=options)
            config = types.GenerateContentConfig(tools=[price])
            return client.models.generate_content(model="m", contents="q", config=config).text

        async def later() -> Any:
            client = genai.Client(api_key="unused", http_options=options)
            config = types.GenerateContentConfig(tools=[price, stock])
            return (await client.aio.models.generate_content(model="m", contents="q", config=config)).text

        value, trace = both(later if awaited else call, RAN)
    assert value == ("fig costs 3 / 3" if awaited else "fig costs 3")
    found = (
        ["model m", "tool price", "tool stock", "model m"]
        if awaited
        else ["model m", "tool price", "model m"]
    )
    assert kinds(trace) == found
    assert trace.calls[1].request == {"args": {"item": "fig"}}


def test_the_model_is_told_of_an_error() -> None:
    with FakeProvider(told) as fake:
        options = types.HttpOptions(base_url=fake.google_url)

        def call() -> Any:
            client = genai.Client(api_key="unused", http_options=options)
            config = types.GenerateContentConfig(tools=[breaks])
            return client.models.generate_content(model="m", contents="q", config=config).text

        value, trace = both(call, RAN)
    assert "because of error no fig" in value
    assert trace.calls[1].status == "error"
