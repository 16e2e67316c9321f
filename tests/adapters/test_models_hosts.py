"""Hosts that speak OpenAI's chat protocol, through OpenAI's SDK: where calls go, what is sent, what comes back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters import models_openai
from agentloom.adapters.models import backend
from agentloom.adapters.models_hosts import HOSTS
from agentloom.adapters.models_openai_answer import Reader
from agentloom.adapters.models_route import Route, find_route
from agentloom.errors import ModelError, ProviderError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange, FakeProvider, Raw, Says
from tests.corpus.files import CORPUS, WHY, api_of, exchanges

USER = {"role": "user", "content": "hi"}
EVENTS = {"content-type": "text/event-stream"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "AZURE_", "HF_", "OLLAMA_")) or name.endswith(
            ("_API_KEY", "_BASE_URL", "_API_BASE")
        ):
            monkeypatch.delenv(name)
    yield
    backend.close()


def body(provider: str, *, stream: bool = False, **request: Any) -> dict[str, Any]:
    return models_openai.body({"messages": [USER], **request}, Route("openai", provider, "m"), stream=stream)


# -- where a call goes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTS)
def test_a_prefix_names_the_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = HOSTS[name]
    if not host.keyless:
        with pytest.raises(
            ModelError, match=rf"{host.keys[0]} is not set\n  next: set {host.keys[0]}"
        ) as caught:
            find_route({"model": f"{name}:a/b:c"})
        assert (caught.value.kind, caught.value.provider) == ("auth", name)
    for variable in reversed(host.keys):
        monkeypatch.setenv(variable, f"value of {variable}")
    route = find_route({"model": f"{name}:a/b:c"})
    assert (route.api, route.provider, route.model, route.base_url) == ("openai", name, "a/b:c", host.url)
    assert route.api_key == f"value of {host.keys[0]}"
    assert find_route({"model": f"{name}:x", "api": "responses"}).api == "responses"
    for variable in host.urls:
        monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
        assert find_route({"model": f"{name}:x"}).base_url == "http://127.0.0.1:9/v1"
        monkeypatch.delenv(variable)


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("0.0.0.0", "http://0.0.0.0:11434/v1"),
        ("10.0.0.5:9999", "http://10.0.0.5:9999/v1"),
        ("https://ollama.example", "https://ollama.example/v1"),
        ("http://127.0.0.1:8/", "http://127.0.0.1:8/v1"),
    ],
)
def test_where_ollama_is(place: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", place)
    assert find_route({"model": "ollama:llama3:8b"}).base_url == url


def test_a_prefix_is_part_of_a_name_on_a_server_of_ones_own() -> None:
    route = find_route({"model": "mistral:7b", "base_url": "http://127.0.0.1:1/v1"})
    assert (route.provider, route.model) == ("openai", "mistral:7b")


def test_a_call_reaches_its_host_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider(["from groq", "from mistral"]) as fake:
        monkeypatch.setenv("GROQ_BASE_URL", fake.openai_url)
        monkeypatch.setenv("GROQ_API_KEY", "the-groq-key")
        monkeypatch.setenv("MISTRAL_BASE_URL", fake.openai_url)
        monkeypatch.setenv("ANY_NAME", "another-key")
        first = backend.complete_sync({"model": "groq:g", "messages": [USER]})
        second = backend.complete_sync({"model": "mistral:m", "messages": [USER], "api_key_env": "ANY_NAME"})
        keys = [seen.headers["authorization"] for seen in fake.seen]
    assert (first["content"], second["content"]) == ("from groq", "from mistral")
    assert keys == ["Bearer the-groq-key", "Bearer another-key"]


# -- Azure -----------------------------------------------------------------------------------------------------------


def test_azure_by_its_v1_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider(["a", "b"]) as fake:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{fake.url}/")
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-azure-key")
        backend.complete_sync({"model": "azure-openai:my-gpt", "messages": [USER]})
        backend.complete_sync({"model": "azure-openai:my-gpt", "messages": [USER], "api": "responses"})
        chat, responses = fake.seen
    assert (chat.path, responses.path) == ("/openai/v1/chat/completions", "/openai/v1/responses")
    assert chat.headers["authorization"] == "Bearer the-azure-key"
    assert chat.body["model"] == "my-gpt"


def test_azure_by_its_dated_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    with FakeProvider(["a", "b", "c"]) as fake:
        request: dict[str, Any] = {"model": "azure-openai:my-gpt", "messages": [USER], "base_url": fake.url}
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-azure-key")
        backend.complete_sync(request)
        backend.complete_sync({**request, "api": "responses"})
        monkeypatch.delenv("AZURE_OPENAI_API_KEY")
        monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "an-entra-token")
        list(backend.stream_sync(request))
        chat, responses, other = fake.seen
    assert chat.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert responses.path == "/openai/responses?api-version=2024-10-21"
    assert chat.headers["api-key"] == "the-azure-key"
    assert "authorization" not in chat.headers
    assert other.headers["authorization"] == "Bearer an-entra-token"


def test_azure_without_an_endpoint_or_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match="AZURE_OPENAI_ENDPOINT"):
        find_route({"model": "azure-openai:my-gpt"})
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com")
    with pytest.raises(ModelError, match="AZURE_OPENAI_API_KEY is not set"):
        find_route({"model": "azure-openai:my-gpt"})


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_parameters_go_by_the_name_that_the_host_knows() -> None:
    assert body("mistral", seed=7, max_completion_tokens=9, safe_prompt=True) == {
        "model": "m", "messages": [USER], "random_seed": 7, "max_tokens": 9, "safe_prompt": True,
    }  # fmt: skip
    assert body("ollama", max_completion_tokens=9)["max_tokens"] == 9
    assert body("groq", seed=7, max_completion_tokens=9) == {
        "model": "m", "messages": [USER], "seed": 7, "max_completion_tokens": 9,
    }  # fmt: skip
    with pytest.raises(ModelError, match="one parameter there, and both are given") as caught:
        body("mistral", seed=1, random_seed=2)
    assert caught.value.kind == "bad_request"


@pytest.mark.parametrize("name", HOSTS)
def test_a_stream_asks_for_its_counts_where_it_may(name: str) -> None:
    asked = body(name, stream=True).get("stream_options")
    assert asked == ({"include_usage": True} if name not in ("mistral", "perplexity") else None)
    assert body(name, stream=True, stream_options=None) == {"model": "m", "messages": [USER]}


def test_ids_of_another_providers_calls_fit_mistral() -> None:
    call = {"id": "call_abc123456789", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    own = {**call, "id": "EscTeQY62"}
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call, own]},
        {"role": "tool", "tool_call_id": call["id"], "content": "1"},
        {"role": "tool", "tool_call_id": own["id"], "content": "2"},
    ]
    made = body("mistral", messages=messages)["messages"]
    first, second = made[1]["tool_calls"]
    assert (len(first["id"]), first["id"].isalnum(), second["id"]) == (9, True, "EscTeQY62")
    assert [made[2]["tool_call_id"], made[3]["tool_call_id"]] == [first["id"], second["id"]]
    assert made == body("mistral", messages=messages)["messages"]
    assert body("groq", messages=messages)["messages"] is messages


def test_what_a_host_wants_back_goes_back_to_it_alone() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "144"},
    ]
    mistral = {"role": "assistant", "content": "144", "blocks": {"mistral": {"content": parts}}}
    assert body("mistral", messages=[mistral])["messages"] == [{"role": "assistant", "content": parts}]
    for other in ("groq", "openai", "openrouter"):
        assert body(other, messages=[mistral])["messages"] == [{"role": "assistant", "content": "144"}]
    thought = {"role": "assistant", "content": "x", "blocks": {"deepseek": {"reasoning_content": "hm"}}}
    assert body("deepseek", messages=[thought])["messages"] == [{"role": "assistant", "content": "x"}]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = body("deepseek", messages=[{**thought, "tool_calls": [call]}])["messages"][0]
    assert asked == {"role": "assistant", "content": "x", "tool_calls": [call], "reasoning_content": "hm"}


# -- what comes back -------------------------------------------------------------------------------------------------


def read(provider: str, *bodies: dict[str, Any], part: str = "delta") -> dict[str, Any]:
    reader = Reader(part, provider)
    answer = assemble(delta for one in bodies for delta in reader.read(one))
    assert reader.complete
    return answer


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_thinking_in_parts_streamed_and_whole() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "12 * 12"}], "closed": True}
    whole = {
        "choices": [
            {"message": {"content": [thought, {"type": "text", "text": "144"}]}, "finish_reason": "stop"}
        ]
    }
    streamed = [
        {**piece(role="assistant", content=""), "p": "abc"},
        {**piece(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "12"}]}]), "p": "a"},
        piece(
            content=[
                {**thought, "thinking": [{"type": "text", "text": " * 12"}]},
                {"type": "text", "text": "1"},
            ]
        ),
        piece("stop", content="44"),
    ]
    made = read("mistral", *streamed)
    assert made == read("mistral", whole, part="message")
    assert (made["content"], made["reasoning"], made["info"], made["extra"]) == ("144", "12 * 12", {}, {})
    assert made["blocks"] == {"mistral": {"content": [thought, {"type": "text", "text": "144"}]}}


def test_reasoning_details_are_joined_by_type_and_index() -> None:
    text = {"type": "reasoning.text", "index": 0, "format": "f"}
    locked = {"type": "reasoning.encrypted", "data": "gAAA", "index": 0, "id": "rs_1", "format": "f"}
    details = [{**text, "text": "We need"}, {**text, "text": " to"}]
    made = read(
        "openrouter",
        piece(content="", reasoning="We need", reasoning_details=details[:1]),
        piece(content="x", reasoning=" to", reasoning_details=details[1:]),
        piece("stop", reasoning_details=[locked]),
    )
    joined = [{**text, "text": "We need to"}, locked]
    assert made["blocks"] == {"openrouter": {"reasoning_details": joined}}
    message = {"content": "x", "reasoning": "We need to", "reasoning_details": joined}
    assert made == read(
        "openrouter", {"choices": [{"message": message, "finish_reason": "stop"}]}, part="message"
    )
    sent = body("openrouter", messages=[Answer(made).message])["messages"][0]
    assert sent == {"role": "assistant", "content": "x", "reasoning_details": joined}


def test_token_counts_by_class_whoever_counts() -> None:
    def usage(provider: str, **last: Any) -> tuple[Any, ...]:
        made = read(provider, {**piece("stop", content="x"), **last})["usage"]
        return made["input"], made["cached"], made["output"], made["reasoning"]

    counts = {"prompt_tokens": 307, "completion_tokens": 26, "total_tokens": 560}
    details = {
        "prompt_tokens_details": {"cached_tokens": 306},
        "completion_tokens_details": {"reasoning_tokens": 227},
    }
    # xAI counts the reasoning beside the completion: 307 + 26 + 227 = 560.
    assert usage("xai", usage={**counts, **details}) == (307, 306, 253, 227)
    assert usage("groq", usage={**counts, **details, "total_tokens": 333}) == (307, 306, 26, 227)
    assert usage("groq", x_groq={"usage": {"prompt_tokens": 3, "completion_tokens": 4}}) == (3, None, 4, None)
    assert usage("together", usage={**counts, "cached_tokens": 5}) == (307, 5, 26, None)
    assert usage("deepseek", usage={**counts, "prompt_cache_hit_tokens": 6}) == (307, 6, 26, None)
    assert usage("perplexity", usage={**counts, "reasoning_tokens": 2}) == (307, None, 26, 2)


def test_a_stream_is_whole_when_its_counts_came_after_the_last_choice() -> None:
    counts = {"prompt_tokens": 22, "completion_tokens": 5}
    made = read(
        "openai", {"choices": [{"index": 0, "delta": {"content": "4"}}]}, {"choices": [], "usage": counts}
    )
    assert (made["content"], made["finish_reason"], made["usage"]["output"]) == ("4", None, 5)


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        ({"finish_reason": "error", "error": {"code": 502, "message": "upstream"}}, "server"),
        ({"finish_reason": "error"}, "server"),
        ({"finish_reason": "insufficient_system_resource"}, "overload"),
    ],
)
def test_an_answer_that_the_provider_gave_up_is_an_error(choice: dict[str, Any], kind: str) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "ha"}, **choice}]}
    data = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    with FakeProvider([Raw(data, 200, EVENTS)]) as fake:
        deltas = backend.stream_sync({"model": "openai:m", "messages": [USER], "base_url": fake.openai_url})
        with pytest.raises(ModelError) as caught:
            list(deltas)
    assert caught.value.kind == kind


def test_words_for_the_end_of_an_answer() -> None:
    made = read("together", piece("eos", content="x"))
    assert (made["finish_reason"], made["native_finish_reason"]) == ("stop", "eos")
    chunk = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": "STOP"}]}
    assert read("openrouter", chunk)["native_finish_reason"] == "STOP"


# -- recorded traffic of the hosts, under their names ----------------------------------------------------------------

NAMES = {
    "api.mistral.ai": "mistral", "openrouter.ai": "openrouter", "api.groq.com": "groq", "api.together.xyz": "together",
    "router.huggingface.co": "huggingface", "api.z.ai": "zai", "api.x.ai": "xai", "api.deepseek.com": "deepseek",
}  # fmt: skip
HOSTED = [
    one
    for _, one in exchanges()
    if one.status == 200 and api_of(one) == "chat" and one.host in NAMES and b'"error":{' not in one.content
]


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_recorded_hosts_are_many() -> None:
    assert {NAMES[one.host] for one in HOSTED} >= {
        "mistral",
        "openrouter",
        "groq",
        "together",
        "huggingface",
        "zai",
    }
    assert len(HOSTED) >= 20


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name[-60:]) for one in HOSTED])
def test_recorded_traffic_under_the_hosts_name(one: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    name = NAMES[one.host]
    kind = one.header("content-type") or one.content_type
    request: dict[str, Any] = dict(one.request())
    with FakeProvider([Raw(one.content, 200, {"content-type": kind})]) as fake:
        monkeypatch.setenv(HOSTS[name].keys[0], "k")
        monkeypatch.setenv(HOSTS[name].urls[0], fake.openai_url)
        asked = {**request, "model": f"{name}:{request['model']}"}
        raw = assemble(backend.stream_sync(asked)) if one.streamed else backend.complete_sync(asked)
        sent = fake.seen[0].body
    answer = Answer(raw)
    assert answer.text or answer.tool_calls
    assert answer.finish_reason in ("stop", "tool_calls", "length")
    assert answer.usage is not None
    assert answer.usage.input
    assert not {"p", "obfuscation", "choices"} & set(raw["info"])
    extra = {"stream_options"} if one.streamed and HOSTS[name].asks_usage else set()
    assert set(sent) - set(request) <= extra
    assert {key: sent[key] for key in request if key in sent and key != "stream"} == {
        key: value for key, value in request.items() if key in sent and key != "stream"
    }
    again = body(name, messages=[answer.message])["messages"][0]  # what goes back is the provider's own form
    assert "blocks" not in again


# -- llmock's own servers of these hosts -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Any:
    testing: Any = pytest.importorskip("llmock.testing", reason="llmock (extra dev) is not installed")
    simulation: Any = pytest.importorskip("llmock.simulation")
    with testing.LLMockServer(responses=simulation.MockResponseSettings()) as running:
        yield running


@pytest.mark.parametrize("name", ["groq", "mistral", "perplexity", "together", "xai"])
def test_hosts_as_llmock_plays_them(name: str, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios: Any = pytest.importorskip("llmock.scenarios")
    monkeypatch.setenv(HOSTS[name].keys[0], "k")
    monkeypatch.setenv(HOSTS[name].urls[0], server.base_url(name))
    request: dict[str, Any] = {"model": f"{name}:some-model", "messages": [USER], "max_completion_tokens": 20}
    made = [Answer(backend.complete_sync(request)), Answer(assemble(backend.stream_sync(request)))]
    for answer in made:
        assert answer.text
        assert answer.finish_reason in ("stop", "length")
    server.state.scenarios.add(scenarios.Fail(429, retry_after=7))
    with pytest.raises(ModelError) as caught:
        backend.complete_sync(request)
    assert (caught.value.kind, caught.value.delay, caught.value.provider) == ("rate_limit", 7.0, name)
    for fault, kinds in (
        ("disconnect", {"connection"}),
        ("truncate", {"connection"}),
        ("malformed", {"malformed"}),
    ):
        server.state.scenarios.add(scenarios.StreamFault(fault))
        with pytest.raises(ModelError) as caught:
            list(backend.stream_sync(request))
        assert caught.value.kind in kinds


def test_a_reply_of_the_fake_reads_the_same_for_every_host(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = Says("It costs $40.", usage=(12, 4, 6, 2))
    made: set[str] = set()
    with FakeProvider(lambda _: reply) as fake:
        for name, host in HOSTS.items():
            monkeypatch.setenv(host.keys[0], "k")
            monkeypatch.setenv(host.urls[0], fake.openai_url)
            answer = backend.complete_sync({"model": f"{name}:m", "messages": [USER]})
            made.add(
                json.dumps(
                    [answer[field] for field in ("content", "usage", "finish_reason", "blocks", "extra")]
                )
            )
    assert len(made) == 1
