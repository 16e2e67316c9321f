"""Questions in full: fallback models, which errors another model may not have, and words that do not go together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import agentloom
from agentloom import agent, sync
from agentloom.api.asking import another_may_do_better
from agentloom.errors import ModelError, NotSupported, OutputError, ProviderError
from agentloom.store import MemoryStore
from agentloom.testing import Fails, FakeProvider, Says


class Ticket(BaseModel):
    team: Literal["billing", "technical"]
    urgent: bool


GOOD = '{"team": "billing", "urgent": true}'
WRONG = '{"team": "sales", "urgent": true}'


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def started(script: Any) -> Generator[FakeProvider]:
        with FakeProvider(script) as provider:
            for name, value in provider.env().items():
                monkeypatch.setenv(name, value)
            yield provider

    return started


# -- words that do not go together -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"output": Ticket, "stream": True}, NotSupported, r"stream=True does not go with output="),
        ({"retry": 2, "stream": True}, NotSupported, r"stream=True does not go with retry="),
        ({"output": Ticket, "n": 2}, NotSupported, "output= reads one answer"),
        (
            {"output": Ticket, "response_format": {"type": "json_object"}},
            TypeError,
            "leave response_format= out",
        ),
        ({"repair": 1}, TypeError, r"repair= is for an answer with output="),
        ({"output": Ticket, "repair": -1}, ValueError, "repair=-1"),
        ({"retry": "often"}, TypeError, "retry= takes a Retry or a number"),
    ],
)
def test_words_that_do_not_go_together(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    @agent
    async def asks() -> Any:
        return await agentloom.model("gpt-4o", "hi", **given)

    @agent
    def asks_sync() -> Any:
        return sync.model("gpt-4o", "hi", **given)

    for which in (asks, asks_sync):
        with pytest.raises(kind, match=message):
            which.run(store=MemoryStore())


# -- fallback models ---------------------------------------------------------------------------------------------------


@agent(name="falls")
async def falls(output: bool) -> Any:
    if output:
        return (await agentloom.model(["gpt-4o", "claude-haiku-4-5"], "hi", output=Ticket, repair=0)).value
    return (
        await agentloom.model(("gpt-4o", "claude-haiku-4-5"), "hi", retry=agentloom.Retry(2, delay=0))
    ).text


@agent(name="falls")
def falls_sync(output: bool) -> Any:
    if output:
        return sync.model(["gpt-4o", "claude-haiku-4-5"], "hi", output=Ticket, repair=0).value
    return sync.model(("gpt-4o", "claude-haiku-4-5"), "hi", retry=agentloom.Retry(2, delay=0)).text


@pytest.mark.parametrize("which", [falls, falls_sync])
def test_the_next_model_is_asked_after_all_attempts(fake: Any, which: Any) -> None:
    with fake([Fails(500), Fails(503), "hello"]) as provider:
        trace = which.run(False, store=MemoryStore())
        assert [seen.protocol for seen in provider.seen] == ["openai", "openai", "anthropic"]
    assert trace.output == "hello"
    models = [(call.name, call.id) for call in trace.calls if call.kind == "model"]
    assert models == [
        ("gpt-4o", "root/falls#1"),
        ("gpt-4o", "root/falls#1~2"),
        ("claude-haiku-4-5", "root/falls#2"),
    ]
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize("which", [falls, falls_sync])
def test_the_next_model_is_asked_when_one_cannot_give_the_type(fake: Any, which: Any) -> None:
    with fake([WRONG, GOOD]):
        trace = which.run(True, store=MemoryStore())
    assert trace.output.urgent
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize(
    ("status", "asked"), [(400, 1), (401, 1), (403, 1), (404, 2), (429, 2), (500, 2), (503, 2), (529, 2)]
)
def test_after_which_errors_another_model_is_asked(fake: Any, status: int, asked: int) -> None:
    @agent
    async def asks() -> str:
        return (await agentloom.model(["gpt-4o", "claude-haiku-4-5"], "hi")).text

    def answer(seen: Any) -> Any:
        return Fails(status) if seen.number == 1 else Says("yes")

    with fake(answer) as provider:
        if asked == 2:
            assert asks.run(store=MemoryStore()).output == "yes"
        else:
            with pytest.raises(ModelError):
                asks.run(store=MemoryStore())
        assert provider.count == asked


def test_the_last_error_names_those_before(fake: Any) -> None:
    with fake([Fails(500), Fails(500), Fails(529), Fails(529)]), pytest.raises(ModelError) as caught:
        falls.run(False, store=MemoryStore())
    assert caught.value.model == "claude-haiku-4-5"
    assert any(note.startswith("asked before: gpt-4o, ModelError:") for note in caught.value.__notes__)


@pytest.mark.parametrize("models", [[], ["a", ""], 3, ["a", 3]])
def test_names_of_models(models: Any) -> None:
    @agent
    async def asks() -> Any:
        return await agentloom.model(models, "hi")

    with pytest.raises(TypeError):
        asks.run(store=MemoryStore())


@pytest.mark.parametrize(
    ("error", "may"),
    [
        *((ModelError(kind, "x", provider="p", model="m"), True) for kind in (
            "rate_limit", "quota", "overload", "server", "connection", "timeout", "malformed", "context_length",
            "content_filter", "not_found",
        )),
        *((ModelError(kind, "x", provider="p", model="m"), False) for kind in ("bad_request", "auth")),
        (OutputError("x", text="", model="m", problems=[], answers=1, reason="invalid"), True),
        (TimeoutError(), True),
        (ProviderError("not installed"), False),
        (ValueError(), False),
    ],
)  # fmt: skip
def test_what_another_model_may_not_have(error: Exception, may: bool) -> None:
    assert another_may_do_better(error) is may
