"""Bedrock's Converse and InvokeModel as protocols of ``model``: what is sent, where, and with which credential."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters import models_bedrock, models_bedrock_invoke, models_bedrock_wire
from agentloom.adapters.models import backend
from agentloom.adapters.models_bedrock_answer import whole
from agentloom.adapters.models_route import Route, find_route
from agentloom.errors import ModelError, ProviderError
from agentloom.runtime.answers import Answer
from tests.adapters.native import MESSAGES, exchange, server

# botocore has no types.
AUTH: Any = importlib.import_module("botocore.auth")
AWSREQUEST: Any = importlib.import_module("botocore.awsrequest")
CREDENTIALS: Any = importlib.import_module("botocore.credentials")
ROUTE = Route("bedrock", "bedrock", "us.anthropic.claude-sonnet-5", "http://host")
SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}
DATA = {"url": "data:image/jpeg;base64,AA=="}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    for name in (
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "SESSION_TOKEN",
        "PROFILE",
        "REGION",
        "DEFAULT_REGION",
    ):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("BEARER_TOKEN_BEDROCK", "ENDPOINT_URL", "ENDPOINT_URL_BEDROCK_RUNTIME"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("CONFIG_FILE", "SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(f"AWS_{name}", str(tmp_path / name))
    monkeypatch.setattr(models_bedrock_wire, "_held", {})
    yield
    backend.close()


def sent(**request: Any) -> dict[str, Any]:
    return models_bedrock.body({"messages": MESSAGES, **request}, ROUTE, stream=False)


def turns(*messages: dict[str, Any]) -> Any:
    return sent(messages=list(messages))["messages"]


def refused(**request: Any) -> str:
    with pytest.raises(ModelError) as caught:
        sent(**request)
    assert caught.value.kind == "bad_request"
    assert caught.value.hint
    return str(caught.value)


def test_a_conversation_becomes_turns() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "developer",
            "content": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": DATA},
                {"type": "image_url", "image_url": {"url": "s3://bucket/a.PNG"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "of 2026/a_b  c.pdf",
                        "file_data": "data:application/pdf;base64,AA==",
                    },
                },
                {"type": "file", "file": {"file_data": "data:text/markdown;base64,AA=="}},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}},
                {"guardContent": {"text": {"text": "x"}}},
            ],
        },
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "t2", "content": [{"json": {"a": 1}}], "is_error": True},
        {"role": "user", "content": "Thanks."},
    ]
    made = sent(messages=messages)
    assert made["system"] == [
        {"text": "Be brief."},
        {"text": "Be kind."},
        {"cachePoint": {"type": "default"}},
    ]
    assert made["messages"] == [
        {
            "role": "user",
            "content": [
                {"text": "What is this?"},
                {"image": {"format": "jpeg", "source": {"bytes": "AA=="}}},
                {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.PNG"}}}},
                {"document": {"format": "pdf", "name": "a-b c", "source": {"bytes": "AA=="}}},
                {"document": {"format": "md", "name": "document", "source": {"bytes": "AA=="}}},
                {"audio": {"format": "wav", "source": {"bytes": "AA=="}}},
                {"video": {"format": "mp4", "source": {"bytes": "AA=="}}},
                {"guardContent": {"text": {"text": "x"}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"text": "Let me look."},
                {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"a": 1}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "a cat"}]}},
                {"toolResult": {"toolUseId": "t2", "content": [{"json": {"a": 1}}], "status": "error"}},
                {"text": "Thanks."},
            ],
        },
    ]


def test_a_system_message_in_mid_conversation_has_its_place() -> None:
    made = turns(*MESSAGES, {"role": "system", "content": "Now be long."}, *MESSAGES)
    assert [turn["role"] for turn in made] == ["user", "system", "user"]


def test_parameters_have_their_names_there() -> None:
    made = sent(
        temperature=0,
        top_p=0.5,
        max_completion_tokens=9,
        stop=["END"],
        n=1,
        logprobs=False,
        reasoning_effort="high",
        metadata={"a": "b"},
        service_tier="flex",
        stream_options={"include_usage": True},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "strict": True, "schema": SCHEMA},
        },
        inferenceConfig={"new": 1},
        guardrailConfig={"guardrailIdentifier": "g"},
        additionalModelRequestFields={"top_k": 3},
        system=[{"text": "own"}],
        user=None,
    )
    assert made == {
        "messages": [{"role": "user", "content": [{"text": MESSAGES[0]["content"]}]}],
        "system": [{"text": "own"}],
        "inferenceConfig": {
            "new": 1,
            "temperature": 0,
            "topP": 0.5,
            "maxTokens": 9,
            "stopSequences": ["END"],
        },
        "outputConfig": {
            "effort": "high",
            "textFormat": {
                "type": "json_schema",
                "structure": {
                    "jsonSchema": {
                        "name": "x",
                        "schema": '{"type":"object","properties":{"é":{"type":"integer"}}}',
                    }
                },
            },
        },
        "requestMetadata": {"a": "b"},
        "serviceTier": {"type": "flex"},
        "guardrailConfig": {"guardrailIdentifier": "g"},
        "additionalModelRequestFields": {"top_k": 3},
    }


def test_tools_and_their_choice() -> None:
    function = {"name": "look", "description": "d", "parameters": SCHEMA, "strict": True}
    tools = [
        {"type": "function", "function": function, "cache_control": {"type": "ephemeral"}},
        {"type": "function", "function": {"name": "stop"}},
        {"systemTool": {"name": "nova_code_interpreter"}},
    ]
    assert sent(tools=tools)["toolConfig"] == {
        "tools": [
            {
                "toolSpec": {
                    "name": "look",
                    "description": "d",
                    "inputSchema": {"json": SCHEMA},
                    "strict": True,
                }
            },
            {"cachePoint": {"type": "default"}},
            {"toolSpec": {"name": "stop", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
            {"systemTool": {"name": "nova_code_interpreter"}},
        ]
    }
    for choice, expected in (
        ("auto", {"auto": {}}),
        ("required", {"any": {}}),
        ({"type": "function", "function": {"name": "look"}}, {"tool": {"name": "look"}}),
        ({"any": {}}, {"any": {}}),
    ):
        assert sent(tools=tools, tool_choice=choice)["toolConfig"]["toolChoice"] == expected


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"n": 2}, "n:"),
        ({"logprobs": True}, "logprobs"),
        ({"seed": 1}, "seed"),
        ({"top_k": 3}, "top_k"),
        ({"user": "u"}, "user"),
        ({"logit_bias": {}}, "logit_bias"),
        ({"invented": 1}, "invented"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls"),
        ({"tool_choice": "none"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"max_tokens": 1, "inferenceConfig": {"maxTokens": 2}}, "maxTokens"),
        ({"stream_options": {"x": 1}}, "stream_options.x"),
        ({"tools": [{"type": "custom", "custom": {"name": "a"}}]}, "tools[0]"),
        ({"messages": [{"role": "user", "content": "a", "name": "Ann"}]}, "messages[0].name"),
        ({"messages": [{"role": "critic", "content": "a"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
    ],
)
def test_what_converse_lacks_is_refused_with_its_place(request_: dict[str, Any], place: str) -> None:
    assert place in refused(**request_)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA=="}},
        {"type": "image_url", "image_url": {**DATA, "detail": "high"}},
        {"type": "image_url"},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "file", "file": {"file_data": "data:application/zip;base64,AA=="}},
        {"type": "text", "text": "a", "cache_control": {"type": "forever"}},
        {"type": "input_text", "text": "a"},
    ],
)
def test_parts_that_converse_lacks_are_refused_with_their_place(part: dict[str, Any]) -> None:
    assert "messages[0].content[0]" in refused(messages=[{"role": "user", "content": [part]}])


def test_signed_reasoning_goes_back_as_it_came() -> None:
    content = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"a": 1}}},
    ]
    answer = Answer(
        whole({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use"})
    )
    assert answer.reasoning == "hm"
    assert turns(*MESSAGES, answer.message, answer.tool_calls[0].result("x"))[1:] == [
        {"role": "assistant", "content": content},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}]},
    ]


def test_an_answer_of_another_provider_goes_back_by_its_text_and_calls() -> None:
    message = {"role": "assistant", "content": "hm", "blocks": {"google": {"parts": [{"text": "hm"}]}}}
    assert turns(*MESSAGES, message)[1] == {"role": "assistant", "content": [{"text": "hm"}]}


def test_the_request_is_left_as_it_was() -> None:
    request: dict[str, Any] = {
        "messages": [
            *MESSAGES,
            *MESSAGES,
            {"role": "assistant", "content": "a", "blocks": {"bedrock": {"content": []}}},
        ],
        "inferenceConfig": {"topP": 1},
        "temperature": 1,
        "toolConfig": {},
        "tools": [{"toolSpec": {}}],
    }
    before = json.dumps(request)
    sent(**request)
    assert json.dumps(request) == before


def test_invoke_says_it_in_anthropics_form() -> None:
    request = {
        "messages": [{"role": "system", "content": "s"}, *MESSAGES],
        "max_tokens": 5,
        "api": "invoke",
        "top_k": 3,
    }
    assert models_bedrock_invoke.body(request, ROUTE, stream=True) == {
        "anthropic_version": "bedrock-2023-05-31",
        "system": [{"type": "text", "text": "s"}],
        "messages": MESSAGES,
        "max_tokens": 5,
        "top_k": 3,
    }


# -- where it goes ---------------------------------------------------------------------------------------------------


def route(name: str, **request: Any) -> Route:
    return find_route({"model": name, **request})


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match="AWS_REGION"):
        route("bedrock:m")
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    found = route("bedrock:anthropic.claude-3-sonnet-20240229-v1:0")
    model = "https://bedrock-runtime.us-west-2.amazonaws.com/model/anthropic.claude-3-sonnet-20240229-v1%3A0"
    assert models_bedrock.address(found, stream=False) == f"{model}/converse"
    assert models_bedrock.address(found, stream=True) == f"{model}/converse-stream"
    assert models_bedrock_invoke.address(found, stream=False) == f"{model}/invoke"
    assert models_bedrock_invoke.address(found, stream=True) == f"{model}/invoke-with-response-stream"
    monkeypatch.setenv("AWS_REGION", "cn-north-1")
    assert route("bedrock:m").base_url == "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"
    monkeypatch.setenv("AWS_REGION", "xx-new-1")
    assert route("bedrock:m").base_url == "https://bedrock-runtime.xx-new-1.amazonaws.com"
    monkeypatch.setenv("AWS_REGION", "us-gov-west-1")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    assert route("bedrock:m").base_url == "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com"
    arn = "arn:aws:bedrock:eu-west-1:123:inference-profile/x"
    found = route(f"bedrock:{arn}")
    assert found.region == "eu-west-1"
    assert "arn%3Aaws%3Abedrock%3Aeu-west-1%3A123%3Ainference-profile%2Fx/" in models_bedrock.address(
        found, stream=False
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://vpc/")
    assert route("bedrock:m").base_url == "http://vpc"
    assert route("bedrock:m", base_url="http://mine").base_url == "http://mine"


def test_the_api_of_the_models_own_form() -> None:
    assert route("bedrock:m", base_url="http://h", api="invoke").api == "bedrock-invoke"
    with pytest.raises(ProviderError, match="Responses"):
        route("bedrock:m", base_url="http://h", api="responses")
    with pytest.raises(ProviderError, match="invoke"):
        route("openai:m", base_url="http://h", api="invoke")


def test_the_region_of_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "CONFIG_FILE").write_text("[profile work]\nregion = sa-east-1\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert route("bedrock:m").region == "sa-east-1"


# -- credentials -----------------------------------------------------------------------------------------------------

MODEL = "bedrock:a.b-v1:0"
REPLY = exchange(
    "/model/a.b-v1%3A0/converse",
    json.dumps({"output": {"message": {"content": [{"text": "hi"}]}}, "stopReason": "end_turn"}).encode(),
)


def asked_with(**request: Any) -> dict[str, str]:
    """The headers that arrive."""
    with server(REPLY) as player:
        answer = backend.complete_sync(
            {"model": MODEL, "messages": MESSAGES, "base_url": player.url, **request}
        )
        assert answer["content"] == "hi"
        return {name.lower(): value for name, value in player.seen[0].headers}


def test_an_api_key_goes_as_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_with(api_key="k1")["authorization"] == "Bearer k1"
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "k2")
    assert asked_with()["authorization"] == "Bearer k2"


def test_a_signature_is_the_one_that_botocore_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    for name, value in {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "SESSION_TOKEN": "tok"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with server(REPLY) as player:
        request = {"model": MODEL, "messages": MESSAGES, "base_url": player.url}
        backend.complete_sync(
            {**request, "extra_query": {"b": "2 3", "a": "1"}, "extra_headers": {"x-mine": "1"}}
        )
        seen = player.seen[0]
        headers = {name.lower(): value for name, value in seen.headers}
        assert headers["x-amz-security-token"] == "tok"
        parts = headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
        assert parts[0].endswith("/eu-west-1/bedrock/aws4_request")
        names = parts[1].removeprefix("SignedHeaders=").split(";")
        assert {"content-type", "host", "x-amz-date", "x-amz-security-token", "x-mine"} <= set(names)
        # What arrived, signed again with the same time, gives the same signature.
        again = AWSREQUEST.AWSRequest(
            "POST", player.url + seen.url, headers={n: headers[n] for n in names}, data=seen.body
        )
        again.context["timestamp"] = headers["x-amz-date"]
        signer = AUTH.SigV4Auth(CREDENTIALS.Credentials("id", "secret", "tok"), "bedrock", "eu-west-1")
        text = signer.string_to_sign(again, signer.canonical_request(again))
        assert parts[2] == f"Signature={signer.signature(text, again)}"


def test_a_server_of_ones_own_needs_no_credential() -> None:
    assert "authorization" not in asked_with()


def test_no_credential_for_aws_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(ModelError) as caught:
        backend.complete_sync({"model": MODEL, "messages": MESSAGES})
    assert caught.value.kind == "auth"
    assert "AWS_BEARER_TOKEN_BEDROCK" in (caught.value.hint or "")
    monkeypatch.setattr(models_bedrock_wire, "_held", {})
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(ProviderError, match="missing"):
        backend.complete_sync({"model": MODEL, "messages": MESSAGES})
