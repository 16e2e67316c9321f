"""An adapter for an SDK that is new, as docs/sdks/adding.md says, and the contract that proves it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import httpx2
import pytest

from agentloom.adapters import exchanges, sdks
from agentloom.adapters.exchanges import Classified, Exchange
from agentloom.api.agent import agent
from agentloom.runtime.calls import CallSpec
from agentloom.store import MemoryStore
from agentloom.testing import Drops, FakeProvider, Raw
from agentloom.testing.sdk_contract import Case, Seam, missing, prove, table
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.tiny_sdk import AsyncTiny, Said, Tiny, TinyError

# -- the adapter -------------------------------------------------------------------------------------------------------


def classify(exchange: Exchange) -> Classified | None:
    """The call that an exchange with the tiny API is; None for anything else."""
    body = exchange.json
    if exchange.method != "POST" or not exchange.path.endswith("/v2/answer") or body is None:
        return None
    name = str(body["model"])
    spec = CallSpec("model", name, body, profile="plain/1", series=f"model:{name}", stream=exchange.streamed)
    return Classified(spec, usage=counts)


def counts(answer: Any) -> dict[str, int]:
    """Tokens, where the answer tells them."""
    return {"output": answer["tokens"]} if isinstance(answer, dict) and "tokens" in answer else {}


@pytest.fixture(autouse=True)
def adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    sdks.watch()
    monkeypatch.setattr(exchanges, "_classifiers", [*exchanges._classifiers])
    exchanges.claim(classify)


# -- its cases ---------------------------------------------------------------------------------------------------------


def facts(said: Said) -> Any:
    return said.text, said.tokens, seen(said.raw)


def whole(url: str) -> Any:
    with Tiny(url) as tiny:
        return [facts(tiny.ask("a")), facts(tiny.ask("b"))]


async def whole_async(url: str) -> Any:
    async with AsyncTiny(url) as tiny:
        return [facts(one) for one in await asyncio.gather(tiny.ask("a"), tiny.ask("a"))]


def stream(url: str) -> Any:
    with Tiny(url) as tiny:
        return list(tiny.stream("a"))


async def early_async(url: str) -> Any:
    async with AsyncTiny(url) as tiny, contextlib.aclosing(tiny.stream("a")) as texts:
        async for text in texts:
            return text
    return None


def failing(url: str) -> Any:
    found: list[Any] = []
    with Tiny(url) as tiny:
        for _ in range(2):
            try:
                found.append(facts(tiny.ask("a")))
            except (TinyError, httpx2.HTTPError) as error:
                found.append(seen(error))
    return found


def retried(url: str) -> Any:
    with Tiny(url) as tiny:
        return facts(tiny.ask("a"))


def limited(url: str) -> Any:
    with Tiny(url, limit=0.2) as tiny:
        try:
            return facts(tiny.ask("a"))
        except httpx2.TimeoutException as error:
            return seen(error)


def answer(text: str, latency: float = 0) -> Raw:
    data = f'{{"text": "{text}", "tokens": 7}}'.encode()
    return Raw(data, 200, {"content-type": "application/json", "x-tiny": "1"}, latency=latency)


EVENTS = Raw(
    b"".join(b'data: {"text": "%d"}\n\n' % n for n in range(5)), 200, {"content-type": "text/event-stream"}
)
BUSY = Raw(b"busy", 503, {"content-type": "text/plain"})
WRONG = Raw(b"no such model", 404, {"content-type": "text/plain"})

SEAM = Seam(
    "tiny",
    [
        Case("sync", whole, [answer("x"), answer("y")], ["model"] * 2),
        Case("async", whole_async, [answer("x"), answer("x")], ["model"] * 2),
        Case("stream", stream, [EVENTS], ["model"]),
        Case("left early", early_async, [EVENTS], ["model"]),
        Case("error", failing, [WRONG, Drops()], ["model"] * 2),
        Case("retry", retried, [BUSY, BUSY, answer("x")], ["model", "sleep"] * 2 + ["model"], waits=True),
        Case("cancel", limited, [answer("late", latency=2)], ["model"]),
    ],
    lacks={"raw": "`Said.raw` is part of each answer"},
)


@pytest.mark.parametrize("case", SEAM.cases, ids=lambda case: case.title)
def test_the_new_adapter_keeps_the_contract(case: Case) -> None:
    assert prove(case).problem == ""


def test_its_row_of_the_table_is_whole() -> None:
    assert missing(SEAM) == []
    assert list(table([SEAM]))[2] == "| tiny | 1/1 | 1/1 | 1/1 | 1/1 | 1/1 | 1/1 | 1/1 | n/a |"


def test_its_calls_tell_model_request_and_tokens() -> None:
    with FakeProvider([answer("x"), answer("y")], others=True) as fake:
        trace = agent(whole).run(fake.url, store=MemoryStore())
    first = trace.calls[0]
    assert (first.kind, first.name) == ("model", "tiny-1")
    assert first.request["question"] == "a"
    assert first.usage == {"output": 7}


def test_the_contract_sees_an_adapter_that_loses_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the adapter the calls are another kind than promised."""
    monkeypatch.setattr(exchanges, "_classifiers", [])
    assert prove(SEAM.cases[0]).problem == "recorded calls are ['http', 'http'], not ['model', 'model']"
