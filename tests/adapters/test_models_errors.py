"""Errors by class: recorded bodies of real providers, forms of their documentation, faults of a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.adapters.models import backend
from agentloom.adapters.models_delays import asked_delay, reset_delay, said_delay
from agentloom.adapters.models_errors import from_response
from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError
from agentloom.testing import Exchange, FakeProvider, Raw
from tests.corpus.files import CORPUS, WHY, exchanges, rows

ROUTE = Route("openai", "somebody", "m")
KINDS = {
    "auth", "bad_request", "connection", "content_filter", "context_length", "malformed", "not_found", "overload",
    "quota", "rate_limit", "server", "timeout",
}  # fmt: skip

# Every recorded failure with its kind and the provider's own code, by the start and number of its name.
RECORDED = {
    "crewAI__TestAgentMultimodalGemini#1": ("rate_limit", "429"),
    "crewAI__test_agent_with_knowledge#0": ("auth", "401"),
    "crewAI__test_agent_with_knowledge#1": ("auth", "401"),
    "crewAI__test_anthropic_stop#0": ("auth", "bad_credentials"),
    "crewAI__test_google_streaming#0": ("auth", "400"),
    "crewAI__test_google_streaming#1": ("auth", "400"),
    "crewAI__test_google_streaming#2": ("auth", "400"),
    "dd-trace-py__anthropic_completion_error#0": ("bad_request", "invalid_request_error"),
    "langsmith-sdk__test_anthropic#24": ("not_found", "not_found_error"),
    "langsmith-sdk__test_openai_agents#1": ("auth", "invalid_api_key"),
    "mirascope__test_model_call_with_tools#1": ("bad_request", "invalid_function_parameters"),
    "openinference__TestLM#0": ("auth", "invalid_api_key"),
    "openinference__should-handle-streaming#0": ("bad_request", None),
    "openinference__test_async_pipeline#11": ("auth", "invalid_api_key"),
    "openllmetry__test_azure_openai_embeddings#2": ("auth", "401"),
    "openllmetry__test_azure_openai_embeddings#3": ("auth", "401"),
    "openllmetry__test_vision#2": ("bad_request", "invalid_image_url"),
    "opentelemetry-python-contrib__test_generate#0": ("bad_request", "400"),
    "pydantic-ai__test_openrouter_errors_raised#0": ("rate_limit", "429"),
    "pydantic-ai__test_openrouter_errors_raised#1": ("rate_limit", "429"),
    "pydantic-ai__test_openrouter_errors_raised#2": ("rate_limit", "429"),
    "pydantic-ai__test_tool_use_failed_error#0": ("bad_request", "tool_use_failed"),
    "ruby_llm__chat_error_handling_with_cohere#0": ("auth", None),
    "ruby_llm__chat_error_handling_with_mistral#0": ("auth", None),
    "ruby_llm__chat_real_error_scenarios_cohere#0": ("context_length", "TOO_MANY_TOKENS"),
    "ruby_llm__chat_real_error_scenarios_openrouter#0": ("context_length", "400"),
}
FAILURES = [one for _, one in exchanges() if one.status >= 400]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    backend.close()


def expected(one: Exchange) -> tuple[str, str | None]:
    file, _, number = one.name.rpartition("#")
    found = [
        kind
        for start, kind in RECORDED.items()
        if file.startswith(start.rpartition("#")[0]) and start.rpartition("#")[2] == number
    ]
    assert len(found) == 1, f"{one.name} has {len(found)} lines in the table"
    return found[0]


def fails(reply: Raw, *, stream: bool = False, api: str = "chat") -> ModelError:
    def ask(url: str) -> object:
        request = {"model": "openai:m", "messages": [], "base_url": url, "api": api}
        return list(backend.stream_sync(request)) if stream else backend.complete_sync(request)

    with FakeProvider([reply]) as fake, pytest.raises(ModelError) as caught:
        ask(fake.openai_url)
    assert caught.value.__context__ is None
    return caught.value


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_every_recorded_failure_is_in_the_table() -> None:
    assert len(FAILURES) == len(RECORDED)
    tagged = {row.file for row in rows() if row.kinds & {"http_400", "http_401", "http_404", "http_429"}}
    assert tagged == {one.name.rpartition("#")[0] for one in FAILURES}


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name[:60] + one.name[-4:]) for one in FAILURES])
def test_a_recorded_failure(one: Exchange) -> None:
    kept = {name: value for name, value in one.headers if name.lower() in ("date", "retry-after")}
    error = fails(Raw(one.content, one.status, {"content-type": "application/json", **kept}))
    kind, code = expected(one)
    assert (error.kind, error.code, error.status) == (kind, code, one.status)
    assert error.retryable == (kind == "rate_limit")
    body = json.loads(one.content)
    inner = body.get("error", body)
    said = inner if isinstance(inner, str) else inner.get("message") or inner.get("detail")
    assert (body.get("message") or said)[:80] in error.message
    if "raw" in str(body):
        assert "is temporarily rate-limited upstream" in error.message


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_recorded_failures_in_mid_stream() -> None:
    found: dict[str, tuple[str, str | None, int | None]] = {}
    wanted = (
        "ai__openai-error",
        "pydantic-ai__test_openrouter_stream_error",
        "pydantic-ai__test_tool_use_failed_error_str",
    )
    for _, one in exchanges():
        api = "responses" if one.name.startswith("ai__") else "chat"
        if one.name.startswith(wanted) and (api == "responses" or b'"error":{' in one.content):
            error = fails(Raw(one.content, 200, {"content-type": "text/event-stream"}), stream=True, api=api)
            found[one.name.partition(".")[0]] = (error.kind, error.code, error.status)
    assert found == {
        "ai__openai-error": ("quota", "insufficient_quota", None),
        "pydantic-ai__test_openrouter_stream_error": ("bad_request", "400", 400),
        "pydantic-ai__test_tool_use_failed_error_streaming": ("bad_request", "tool_use_failed", 400),
    }


def test_what_the_model_wrote_is_in_the_error_of_a_refused_tool_call() -> None:
    body = {"error": {"message": "it failed", "code": "tool_use_failed", "failed_generation": '{"x": 1}'}}
    assert 'it failed; the model wrote: {"x": 1}' in str(from_response(400, {}, body, ROUTE))


# -- documented forms ------------------------------------------------------------------------------------------------

FORMS: list[tuple[int | None, Any, str]] = [
    (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "quota"),
    (
        429,
        {"error": {"message": "Rate limit reached", "type": "tokens", "code": "rate_limit_exceeded"}},
        "rate_limit",
    ),
    (
        429,
        {"object": "error", "message": "Service tier capacity exceeded.", "type": "x", "code": "3505"},
        "overload",
    ),
    (
        400,
        {
            "error": {
                "code": "content_filter",
                "message": "m",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        "content_filter",
    ),
    (
        400,
        {"error": {"code": None, "message": "m", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
        "content_filter",
    ),
    (
        403,
        {"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "x", "reasons": ["r"]}}},
        "content_filter",
    ),
    (402, {"error": {"code": 402, "message": "Insufficient credits"}}, "quota"),
    (
        402,
        {
            "error": {
                "message": "Insufficient Balance",
                "type": "unknown_error",
                "code": "invalid_request_error",
            }
        },
        "quota",
    ),
    (
        403,
        {
            "code": "permission",
            "error": "Your team has either used all available credits or reached its limit",
        },
        "quota",
    ),
    (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"},
        },
        "quota",
    ),
    (400, {"code": "c", "error": "This model's maximum prompt length is 131072 but ..."}, "context_length"),
    (
        400,
        {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"},
        "context_length",
    ),
    (400, {"error": {"code": 400, "message": "m", "type": "exceed_context_size_error"}}, "context_length"),
    (404, {"error": {"code": "DeploymentNotFound", "message": "m"}}, "not_found"),
    (404, {"error": "model 'x' not found"}, "not_found"),
    (
        422,
        {
            "detail": [
                {"loc": ["body", "n"], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"}
            ]
        },
        "bad_request",
    ),
    (
        422,
        {"object": "error", "message": {"detail": [{"loc": ["body"], "msg": "Extra inputs"}]}, "code": None},
        "bad_request",
    ),
    (498, {"error": {"message": "Flex tier capacity exceeded"}}, "overload"),
    (500, {"error": {"message": "model is overloaded, please try again later"}}, "overload"),
    (500, {"error": {"message": "oops", "type": "server_error"}}, "server"),
    (502, "<html>bad gateway</html>", "server"),
    (504, {}, "timeout"),
    (418, {}, "bad_request"),
    (None, {"error": {"code": 502, "message": "upstream failed"}}, "server"),
    (None, {"error": {"code": "429", "message": "slow"}}, "rate_limit"),
    (None, {"error": {"message": "Request timed out"}}, "timeout"),
    (None, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "overload"),
    (None, {"error": {"type": "invalid_request_error", "message": "m"}}, "bad_request"),
    (None, [{"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}], "overload"),
]


@pytest.mark.parametrize(
    ("status", "body", "kind"), FORMS, ids=[f"{i}-{form[2]}" for i, form in enumerate(FORMS)]
)
def test_documented_forms(status: int | None, body: Any, kind: str) -> None:
    error = from_response(status, {}, body, ROUTE)
    assert error.kind == kind
    if status is not None:
        assert error.status == status
        if isinstance(body, dict) and body:
            assert fails(Raw(json.dumps(body).encode(), status)).kind == kind  # also through the SDK


def test_places_of_a_validation_report_are_said() -> None:
    body = {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}
    assert "body.stream_options: Extra inputs are not permitted" in str(from_response(422, {}, body, ROUTE))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "detail", "metadata", "loc", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(status=st.none() | st.integers(400, 599), body=JSON)
def test_any_body_has_a_kind_and_a_text(status: int | None, body: Any) -> None:
    error = from_response(status, {}, body, ROUTE, fallback="the status alone")
    assert error.kind in KINDS
    assert error.message
    json.dumps(error.fields)


# -- delays ----------------------------------------------------------------------------------------------------------

DATE = {"date": "Fri, 07 Nov 2025 01:58:22 GMT"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 07 Nov 2025 01:58:52 GMT", **DATE}, 30.0),
        ({"retry-after": "Fri, 07 Nov 2025 01:58:02 GMT", **DATE}, 0.0),
        ({"retry-after": "Fri, 07 Nov 2025 01:58:52 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_delays_that_are_asked_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_delay(headers) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-tokens": "99",
                "x-ratelimit-reset-tokens": "12ms",
            },
            360.0,
        ),
        ({"x-ratelimit-reset-requests": "12ms", "x-ratelimit-reset-tokens": "1.5s"}, 1.5),
        ({"x-ratelimit-reset-tokens-minute": "57.25", "x-ratelimit-remaining-tokens-minute": "0"}, 57.25),
        ({"X-RateLimit-Reset": "1762480762000", "X-RateLimit-Remaining": "0", **DATE}, 60.0),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2025-11-07T01:58:42Z",
                **DATE,
            },
            20.0,
        ),
        ({"x-ratelimit-reset-requests": "1d2h"}, 93600.0),
        ({"x-ratelimit-reset-requests": "whenever", "x-ratelimit-limit-requests": "5"}, None),
    ],
)
def test_delays_until_a_limit_opens_again(headers: dict[str, str], seconds: float | None) -> None:
    assert reset_delay(headers) == seconds


def test_a_delay_in_words_and_one_inside_the_body() -> None:
    text = "Rate limit reached on tokens per minute (TPM): Limit 15000. Please try again in 1m5.289s. Visit"
    assert said_delay(text) == pytest.approx(65.289)
    assert said_delay("try again in 20 seconds") == 20.0
    assert said_delay("try again later") is None
    assert from_response(429, {}, {"error": {"message": text}}, ROUTE).delay == pytest.approx(65.289)
    assert from_response(400, {}, {"error": {"message": text}}, ROUTE).delay is None
    inside = {
        "error": {
            "code": 429,
            "message": "m",
            "metadata": {"headers": {"X-RateLimit-Reset": "30", "X-RateLimit-Remaining": "0"}},
        }
    }
    assert from_response(429, {}, inside, ROUTE).delay == 30.0


def test_delays_through_the_sdk() -> None:
    headers = {
        "content-type": "application/json",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "3s",
    }
    body = json.dumps({"error": {"message": "slow down"}}).encode()
    assert fails(Raw(body, 429, headers)).delay == 3.0
    assert fails(Raw(body, 400, headers)).delay is None
    assert fails(Raw(body, 503, {**headers, "retry-after-ms": "250"})).delay == 0.25
