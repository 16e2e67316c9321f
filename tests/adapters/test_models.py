"""The model backend on both official SDKs, against a scripted server."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest

from agentloom.adapters import models_clients
from agentloom.adapters.models import backend
from agentloom.adapters.models_route import find_route
from agentloom.errors import ModelError, ProviderError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble, empty_answer
from agentloom.testing import Drops, Fails, FakeProvider, Raw, Reply, Says, Wants

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What does 812 cost?"}]
FULL = Says(
    "It costs $40.",
    tools=[Wants("look", {"id": 812, "name": "é"}), Wants("stop")],
    reasoning="let me see",
    usage=(12, 4, 6, 2),
)
APIS = ["openai", "anthropic", "responses"]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("API_KEY", "BASE_URL"):
        for api in ("OPENAI", "ANTHROPIC"):
            monkeypatch.delenv(f"{api}_{name}", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    yield
    backend.close()


def ask(fake: FakeProvider, api: str, **params: Any) -> dict[str, Any]:
    url = fake.anthropic_url if api == "anthropic" else fake.openai_url
    chosen = {"api": "responses"} if api == "responses" else {}
    provider = "openai" if api == "responses" else api
    return {"model": f"{provider}:some-model", "messages": MESSAGES, "base_url": url, **chosen, **params}


def four_ways(api: str, reply: Reply, **params: Any) -> list[dict[str, Any]]:
    """The same reply asked for whole and streamed, blocking and awaited."""
    with FakeProvider(lambda _: reply) as fake:
        request = ask(fake, api, **params)

        async def awaited() -> list[dict[str, Any]]:
            whole = await backend.complete(request)
            return [whole, assemble([delta async for delta in backend.stream(request)])]

        made = [
            backend.complete_sync(request),
            assemble(backend.stream_sync(request)),
            *asyncio.run(awaited()),
        ]
    # The server numbers its ids by request.
    return [_unnumbered(answer, number) for number, answer in enumerate(made, 1)]


def _unnumbered(answer: dict[str, Any], number: int) -> dict[str, Any]:
    text = json.dumps(answer).replace(f"170000000{number}", "17")
    for mark in (f"fake_{number}", f"fake-{number}", f"sig-{number}"):
        text = text.replace(mark, "N")
    plain: dict[str, Any] = json.loads(text)
    return plain


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "reply",
    [
        FULL,
        Says("plain text"),
        Says(tools=[Wants("look", {"a": [1, {"b": None}]})]),
        Says("cut", finish="length"),
        Says(""),
    ],
    ids=["full", "text", "tool", "length", "empty"],
)
def test_all_four_ways_give_the_same_answer(api: str, reply: Says) -> None:
    first, *others = four_ways(api, reply)
    assert list(first) == list(empty_answer())
    for other in others:
        assert other == first


def test_an_openai_answer_in_full() -> None:
    answer = four_ways("openai", FULL)[0]
    assert answer["content"] == "It costs $40."
    assert [call["function"]["name"] for call in answer["tool_calls"]] == ["look", "stop"]
    assert answer["reasoning"] == "let me see"
    assert answer["finish_reason"] == answer["native_finish_reason"] == "tool_calls"
    assert answer["usage"] == {"input": 12, "cached": 4, "cache_write": None, "output": 6, "reasoning": 2}
    assert answer["system_fingerprint"] == "fp_fake"
    assert (answer["id"], answer["request_id"], answer["model"]) == ("chatcmpl-N", "req_N", "some-model")
    assert answer["info"] == {"created": 17, "service_tier": "default"}


def test_an_anthropic_answer_in_full() -> None:
    answer = four_ways("anthropic", FULL)[0]
    assert answer["content"] == "It costs $40."
    assert Answer(answer).tool_calls[0].arguments == {"id": 812, "name": "é"}
    assert answer["reasoning"] == "let me see"
    assert (answer["finish_reason"], answer["native_finish_reason"]) == ("tool_calls", "tool_use")
    # Anthropic counts cached tokens beside the input: 8 + 4 on the wire.
    assert answer["usage"] == {"input": 12, "cached": 4, "cache_write": 0, "output": 6, "reasoning": None}
    assert answer["raw_usage"]["input_tokens"] == 8
    assert [block["type"] for block in answer["blocks"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer["blocks"][0]["signature"] == "N"


def test_logprobs_and_unknown_fields_come_back() -> None:
    reply = Says("a b c", logprobs=[-0.1, -0.2, -0.3], extra={"brand_new": "value"})
    first, *others = four_ways("openai", reply, logprobs=True)
    assert [token["logprob"] for token in first["logprobs"]["content"]] == [-0.1, -0.2, -0.3]
    assert first["extra"] == {"brand_new": "value"}
    assert all(other == first for other in others)


def test_malformed_arguments_are_kept_as_written() -> None:
    answer = four_ways("openai", Says(tools=[Wants("look", '{"id": 812')]))[1]
    assert answer["tool_calls"][0]["function"]["arguments"] == '{"id": 812'


def test_the_body_is_the_request_as_recorded() -> None:
    params = {
        "temperature": 0.5,
        "brand_new": {"x": 1},
        "seed": 7,
        "extra_body": {"last": True},
        "timeout": 9.0,
    }
    with FakeProvider(["x", "x"]) as fake:
        backend.complete_sync(
            ask(fake, "openai", **params, extra_headers={"x-trace": "t"}, extra_query={"q": "1"})
        )
        list(backend.stream_sync(ask(fake, "openai", stream_options=None)))
        whole, streamed = fake.seen
    assert whole.body == {
        "model": "some-model",
        "messages": MESSAGES,
        "temperature": 0.5,
        "brand_new": {"x": 1},
        "seed": 7,
        "last": True,
    }
    assert whole.headers["x-trace"] == "t"
    assert streamed.body == {"model": "some-model", "messages": MESSAGES, "stream": True}


def test_a_stream_asks_for_its_token_counts() -> None:
    with FakeProvider(["x"]) as fake:
        answer = assemble(backend.stream_sync(ask(fake, "openai")))
        assert fake.seen[0].body["stream_options"] == {"include_usage": True}
    assert answer["usage"]["output"] == 5


def test_several_choices() -> None:
    choices = [
        {"index": i, "message": {"role": "assistant", "content": t}, "finish_reason": "stop"}
        for i, t in enumerate("ab")
    ]
    with FakeProvider([Raw(json.dumps({"id": "x", "model": "m", "choices": choices}).encode())]) as fake:
        answer = Answer(backend.complete_sync(ask(fake, "openai", n=2)))
    assert answer.text == "a"
    assert [choice.text for choice in answer.choices] == ["a", "b"]


def test_a_streams_pieces_arrive_one_by_one() -> None:
    with FakeProvider([Says("one two three")]) as fake:
        deltas = list(backend.stream_sync(ask(fake, "openai")))
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["one ", "two ", "three"]
    assert list(deltas[0]) == ["request_id"]


@pytest.mark.parametrize("api", APIS)
def test_leaving_a_stream_early_closes_the_connection(api: str) -> None:
    with FakeProvider([Says("a b c d e f g"), "again"]) as fake:
        stream = backend.stream_sync(ask(fake, api))
        seen = [next(stream) for _ in range(4)]
        stream.close()  # type: ignore[attr-defined]
        assert any(delta.get("content") for delta in seen)

        async def leave() -> None:
            events = backend.stream(ask(fake, api))
            async for _ in events:
                break
            await events.aclose()  # type: ignore[attr-defined]

        asyncio.run(leave())


def test_cancelling_an_awaited_call_is_not_an_error_of_the_provider() -> None:
    arrived = threading.Event()

    def script(_: object) -> Reply:
        arrived.set()
        return Says("late", latency=600)

    async def cancel(fake: FakeProvider) -> None:
        task = asyncio.ensure_future(backend.complete(ask(fake, "openai")))
        await asyncio.to_thread(arrived.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with FakeProvider(script) as fake:
        asyncio.run(cancel(fake))


def test_calls_from_many_threads_and_loops() -> None:
    with FakeProvider(lambda seen: Says(seen.body["messages"][0]["content"])) as fake:
        found: dict[int, list[str]] = {}

        def work(number: int) -> None:
            texts = [f"{number}-{turn}" for turn in range(4)]
            requests = [ask(fake, "openai", messages=[{"role": "user", "content": text}]) for text in texts]

            async def gather() -> list[dict[str, Any]]:
                return await asyncio.gather(*map(backend.complete, requests))

            answers = [backend.complete_sync(request) for request in requests] + asyncio.run(gather())
            found[number] = [answer["content"] for answer in answers]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {n: [f"{n}-{turn}" for turn in range(4)] * 2 for n in range(4)}


def test_an_event_loop_closes_its_clients() -> None:
    with FakeProvider(["a", "b"]) as fake:

        async def both() -> Any:
            await backend.complete(ask(fake, "openai"))
            client = await models_clients.async_client(find_route(ask(fake, "openai")))
            await backend.complete(ask(fake, "openai"))
            return client

        client = asyncio.run(both())
        assert client.is_closed()
        gc.collect()


# -- where a call goes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "api", "name"),
    [
        ("gpt-4o", "openai", "gpt-4o"),
        ("o3-mini", "openai", "o3-mini"),
        ("ft:gpt-4o:acme", "openai", "ft:gpt-4o:acme"),
        ("openai:anything", "openai", "anything"),
        ("claude-haiku-4-5", "anthropic", "claude-haiku-4-5"),
        ("anthropic:claude-x", "anthropic", "claude-x"),
    ],
)
def test_names_choose_the_protocol(model: str, api: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k-openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-anthropic")
    route = find_route({"model": model})
    assert (route.api, route.model, route.api_key) == (api, name, f"k-{api}")
    assert "k-openai" not in repr(route)


def test_a_base_url_takes_any_name_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in ("llama3:8b", "claude-x", "mistral-large"):
        route = find_route({"model": model, "base_url": "http://127.0.0.1:1/v1"})
        assert (route.api, route.model, route.base_url) == ("openai", model, "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2/v1")
    route = find_route({"model": "llama3:8b"})
    assert (route.api, route.model, route.base_url) == ("openai", "llama3:8b", "http://127.0.0.1:2/v1")


def test_the_environment_names_the_server_and_no_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider(["from openai", "from anthropic"]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.anthropic_url)
        texts = [
            backend.complete_sync({"model": m, "messages": MESSAGES})["content"]
            for m in ("gpt-4o", "claude-x")
        ]
    assert texts == ["from openai", "from anthropic"]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_a_missing_key_is_said_before_any_network(model: str) -> None:
    with pytest.raises(ModelError, match=r"_API_KEY is not set\n  next: set .*_API_KEY") as caught:
        backend.complete_sync({"model": model, "messages": MESSAGES})
    assert caught.value.kind == "auth"


def test_a_missing_package_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProviderError, match=r"pip install 'agentloom-runtime\[models\]'"):
        backend.complete_sync({"model": "gpt-4o", "messages": MESSAGES})
    with pytest.raises(ModelError, match=r"pip install 'agentloom-runtime\[providers\]'"):
        backend.complete_sync({"model": "nebius:large", "messages": MESSAGES})


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"messages": []}, "names no model"),
        ({"model": "nobody-knows-this"}, "no provider is known"),
        ({"model": "nobody:m"}, "no provider 'nobody'"),
        ({"model": "m", "base_url": "ftp://x"}, "no http or https"),
        ({"model": "m", "base_url": "http://me:pw@x/v1"}, "user name or password"),
        ({"model": "gpt-4o", "api_key_env": "NO_SUCH_VARIABLE_HERE"}, "which is not set"),
    ],
)
def test_a_request_that_can_go_nowhere(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(ProviderError, match=words) as caught:
        backend.complete_sync(request_)
    assert caught.value.hint
    assert "pw" not in str(caught.value)


def test_a_key_by_the_name_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_OWN_KEY", "the-value-of-it")
    with FakeProvider(["x", "x"]) as fake:
        backend.complete_sync(ask(fake, "openai", api_key_env="MY_OWN_KEY"))
        backend.complete_sync(ask(fake, "anthropic", api_key_env="MY_OWN_KEY"))
        first, second = fake.seen
    assert first.headers["authorization"] == "Bearer the-value-of-it"
    # anthropic 2.x sends its keys as bearer tokens.
    sent = second.headers.get("x-api-key") or second.headers["authorization"].removeprefix("Bearer ")
    assert sent == "the-value-of-it"
    assert "api_key_env" not in first.body


def test_anthropics_other_kind_of_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "a-bearer-token")
    with FakeProvider(["x"]) as fake:
        backend.complete_sync(ask(fake, "anthropic"))
    assert fake.seen[0].headers["authorization"] == "Bearer a-bearer-token"


# -- what goes wrong ------------------------------------------------------------------------------------------------

KINDS: list[tuple[Reply, str, bool]] = [
    (Fails(400, "bad field"), "bad_request", False),
    (Fails(400, "This model's maximum context length is 8192 tokens"), "context_length", False),
    (Fails(400, "prompt is too long: 250000 tokens"), "context_length", False),
    (Fails(400, "filtered", code="content_filter"), "content_filter", False),
    (Fails(401, "no such key"), "auth", False),
    (Fails(403, "not yours"), "auth", False),
    (Fails(404, "no such model"), "not_found", False),
    (Fails(429, "slow down", retry_after=2.5), "rate_limit", True),
    (Fails(429, "no money", code="insufficient_quota"), "quota", False),
    (Fails(500, "oops"), "server", True),
    (Fails(503, "busy"), "overload", True),
    (Fails(529, "busy"), "overload", True),
    (Drops(), "connection", True),
    (Raw(b"<html>", 200, {"content-type": "text/html"}), "malformed", False),
    (Raw(b'{"hello": 1}'), "malformed", False),
    (Raw(b"[1]"), "malformed", False),
    (Raw(b"", 502, {}), "server", True),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("reply", "kind", "retryable"), KINDS, ids=[f"{i}-{k[1]}" for i, k in enumerate(KINDS)]
)
def test_failures_by_kind(
    api: str, reply: Reply, kind: str, retryable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret-credential")
    with FakeProvider(lambda _: reply) as fake:
        request = ask(fake, api, api_key_env="THE_KEY")
        with pytest.raises(ModelError) as first:
            backend.complete_sync(request)
        with pytest.raises(ModelError) as second:
            asyncio.run(backend.complete(request))
        assert fake.count == 2, "a hidden retry"
    for caught in (first, second):
        error = caught.value
        assert (error.kind, error.retryable, error.provider, error.model) == (
            kind,
            retryable,
            "openai" if api == "responses" else api,
            "some-model",
        )
        assert error.delay == (2.5 if kind == "rate_limit" else None)
        assert error.__cause__ is None
        assert error.__context__ is None
        assert "sk-secret" not in repr(vars(error)) + str(error)
        json.dumps(error.fields)
    if isinstance(reply, Fails):
        assert (first.value.status, first.value.request_id) == (reply.status, "req_fake_1")
        assert reply.message in str(first.value)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Fails(429, "slow down"), "rate_limit"),
        (Says("a b c d", error_after=4), "overload"),
        (Says("a b c d", break_after=4), "connection"),
        (Drops(), "connection"),
    ],
    ids=["refused", "error", "broken", "dropped"],
)
def test_streams_that_fail(api: str, reply: Reply, kind: str) -> None:
    with FakeProvider(lambda _: reply) as fake:
        request = ask(fake, api)
        with pytest.raises(ModelError) as first:
            list(backend.stream_sync(request))

        async def awaited() -> None:
            async for _ in backend.stream(request):
                pass

        with pytest.raises(ModelError) as second:
            asyncio.run(awaited())
    assert first.value.kind == second.value.kind == kind
    assert first.value.__context__ is None


def test_a_stream_that_ends_without_an_end_is_no_answer() -> None:
    chunk = {"id": "x", "choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]}
    body = f"data: {json.dumps(chunk)}\n\n".encode()
    reply = Raw(body, 200, {"content-type": "text/event-stream"})
    with (
        FakeProvider([reply]) as fake,
        pytest.raises(ModelError, match="ended before the answer was complete"),
    ):
        list(backend.stream_sync(ask(fake, "openai")))


def test_a_timeout_is_said_as_one() -> None:
    with FakeProvider(lambda _: Says("late", latency=600)) as fake, pytest.raises(ModelError) as caught:
        backend.complete_sync(ask(fake, "openai", timeout=0.05))
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)


def test_a_key_that_the_provider_repeats_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "sk-secret-credential")
    reply = Fails(401, "Incorrect API key provided: sk-secret-credential.")
    with FakeProvider([reply]) as fake, pytest.raises(ModelError, match=r"provided: \[credential\]"):
        backend.complete_sync(ask(fake, "openai", api_key_env="THE_KEY"))


def test_retries_only_when_the_request_says_so() -> None:
    with FakeProvider([Fails(500, retry_after=0.01), Says("second time")]) as fake:
        answer = backend.complete_sync(ask(fake, "openai", max_retries=1))
        assert (answer["content"], fake.count) == ("second time", 2)
        assert "max_retries" not in fake.seen[0].body


# -- how it is found ------------------------------------------------------------------------------------------------


def test_the_runtime_finds_it_by_entry_point() -> None:
    found = {entry.name: entry for entry in entry_points(group="agentloom.models")}
    assert found["default"].value == "agentloom.adapters.models:backend"
    assert found["default"].load() is backend


def test_loading_the_backend_imports_no_sdk() -> None:
    code = (
        "import sys, agentloom.adapters.models\n"
        "print([m for m in ('openai', 'anthropic', 'any_llm', 'pydantic', 'httpx', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
