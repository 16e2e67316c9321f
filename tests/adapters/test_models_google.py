"""Google's generateContent as a protocol of ``model``: what is sent, what comes back, what goes back next time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters import models_google
from agentloom.adapters.models import backend
from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError
from tests.adapters.native import MESSAGES

GEMINI = Route("google", "gemini", "gemini-3-pro", "http://host/v1beta")
VERTEX = Route("google", "vertex", "gemini-2.5-flash", "http://host/v1beta1/projects/p/locations/global")
SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
PATH = "/v1beta/models/gemini-3-pro"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    yield
    backend.close()


def sent(route: Route = GEMINI, **request: Any) -> dict[str, Any]:
    return models_google.body({"messages": MESSAGES, **request}, route, stream=False)


def refused(route: Route = GEMINI, **request: Any) -> str:
    with pytest.raises(ModelError) as caught:
        sent(route, **request)
    assert caught.value.kind == "bad_request"
    assert caught.value.hint
    return str(caught.value)


def called(*calls: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
    made = [
        {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        for name, tool, given in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made, **more}


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_a_conversation_becomes_contents() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                {"type": "image_url", "image_url": {"url": "https://host/a.JPG?x=1", "detail": "auto"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA=="}},
                {"type": "file", "file": {"file_id": "gs://bucket/a"}},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                {"type": "video_url", "video_url": {"url": "https://youtu.be/x"}},
                {"fileData": {"fileUri": "files/a"}, "videoMetadata": {"fps": 1}},
            ],
        },
        called(("c1", "look", {"id": 812}), ("c2", "look", {"id": 813}), content="Let me look."),
        {"role": "tool", "tool_call_id": "c2", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c1", "content": '{"price": 40.0}'},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "You are welcome."},
    ]
    made = sent(messages=messages)
    assert made["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert made["contents"] == [
        {
            "role": "user",
            "parts": [
                {"text": "What is this?"},
                {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://host/a.JPG?x=1"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}},
                {"fileData": {"fileUri": "gs://bucket/a"}},
                {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
                {"fileData": {"fileUri": "https://youtu.be/x"}},
                {"fileData": {"fileUri": "files/a"}, "videoMetadata": {"fps": 1}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "Let me look."},
                {"functionCall": {"name": "look", "args": {"id": 812}}},
                {"functionCall": {"name": "look", "args": {"id": 813}}},
            ],
        },
        {
            "role": "user",
            # In the order of the calls: Google has nothing else to tell two calls of one function apart.
            "parts": [
                {"functionResponse": {"name": "look", "response": {"price": 40.0}}},
                {"functionResponse": {"name": "look", "response": {"output": "a cat"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "Thanks."}]},
        {"role": "model", "parts": [{"text": "You are welcome."}]},
    ]


@pytest.mark.parametrize(
    ("content", "more", "response"),
    [
        ("40", {}, {"output": "40"}),
        ("[1]", {}, {"output": "[1]"}),
        ('{"a": NaN}', {}, {"output": '{"a": NaN}'}),
        ('{"a": 1, "a": 2}', {}, {"output": '{"a": 1, "a": 2}'}),
        ("boom", {"is_error": True}, {"error": "boom"}),
        ('{"a": 1}', {"is_error": False}, {"a": 1}),
        ("", {}, {"output": ""}),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], {}, {"output": ["a", "b"]}),
    ],
)
def test_a_result_is_an_object_there(content: Any, more: dict[str, Any], response: dict[str, Any]) -> None:
    messages = [called(("c", "look", {})), {"role": "tool", "tool_call_id": "c", "content": content, **more}]
    (part,) = sent(messages=messages)["contents"][1]["parts"]
    assert part == {"functionResponse": {"name": "look", "response": response}}


def test_media_in_a_result_go_beside_it_and_own_results_pass() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [called(("c", "look", {})), {"role": "tool", "tool_call_id": "c", "content": [image]}]
    (part,) = sent(messages=messages)["contents"][1]["parts"]
    data = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    assert part == {"functionResponse": {"name": "look", "response": {}, "parts": [data]}}
    own = {"functionResponse": {"name": "look", "response": {"a": 1}, "scheduling": "SILENT"}}
    messages[1]["content"] = [own]
    assert sent(messages=messages)["contents"][1]["parts"] == [own]


def test_parameters_have_their_names_there() -> None:
    made = sent(
        temperature=0,
        top_p=0.5,
        top_k=3,
        max_tokens=9,
        stop="END",
        n=2,
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        logprobs=True,
        top_logprobs=4,
        modalities=["text", "image"],
        reasoning_effort="low",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "strict": True, "schema": SCHEMA},
        },
        generationConfig={
            "thinkingConfig": {"includeThoughts": True},
            "mediaResolution": "MEDIA_RESOLUTION_LOW",
        },
        safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
        stream_options={"include_usage": True},
        user=None,
    )
    assert made.pop("contents")
    assert made == {
        "generationConfig": {
            "temperature": 0,
            "topP": 0.5,
            "topK": 3,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "candidateCount": 2,
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
            "responseLogprobs": True,
            "logprobs": 4,
            "responseModalities": ["TEXT", "IMAGE"],
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
            "mediaResolution": "MEDIA_RESOLUTION_LOW",
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
    }


def test_models_before_3_think_by_a_budget() -> None:
    made = sent(VERTEX, reasoning_effort="medium")["generationConfig"]
    assert made == {"thinkingConfig": {"thinkingBudget": 8192}}
    assert "reasoning_effort" in refused(VERTEX, reasoning_effort="xhigh")


def test_tools_and_their_choice() -> None:
    function = {"name": "look", "description": "d", "parameters": SCHEMA}
    tools = [
        {"type": "function", "function": function},
        {"type": "function", "function": {"name": "stop", "strict": None}},
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "own", "parameters": {"type": "OBJECT"}}]},
        {"type": "function", "function": {"name": "last"}},
    ]
    made = sent(tools=tools, tool_choice="required", parallel_tool_calls=True)
    assert made["tools"] == [
        {
            "functionDeclarations": [
                {"name": "look", "description": "d", "parametersJsonSchema": SCHEMA},
                {"name": "stop"},
            ]
        },
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "own", "parameters": {"type": "OBJECT"}}]},
        {"functionDeclarations": [{"name": "last"}]},
    ]
    assert made["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    named = {"type": "function", "function": {"name": "look"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
    one = {"mode": "ANY", "allowedFunctionNames": ["look"]}
    strict = [{"type": "function", "function": {"name": "look", "strict": True}}]
    for choice, given, expected in (
        ("none", tools, {"mode": "NONE"}),
        ("auto", tools, {"mode": "AUTO"}),
        (named, tools, one),
        (allowed, tools, {**one, "mode": "VALIDATED"}),
        (None, strict, {"mode": "VALIDATED"}),
        ("auto", strict, {"mode": "VALIDATED"}),
        ({"functionCallingConfig": {"mode": "X"}}, tools, {"mode": "X"}),
    ):
        config = sent(tools=given, tool_choice=choice)["toolConfig"]
        assert config == {"functionCallingConfig": expected}


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"logit_bias": {"1": 1}}, "logit_bias"),
        ({"user": "u"}, "user"),
        ({"store": True}, "store"),
        ({"metadata": {"a": "b"}}, "metadata"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "maxOutputTokens"),
        ({"temperature": 1, "generationConfig": {"temperature": 2}}, "temperature"),
        ({"response_format": {"type": "grammar"}}, "response_format"),
        ({"tools": [{"type": "custom", "custom": {"name": "a"}}]}, "tools[0]"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"contents": []}, "contents"),
        ({"messages": [{"role": "user", "content": "a", "name": "Ann"}]}, "messages[0].name"),
        ({"messages": [*MESSAGES, {"role": "system", "content": "a"}]}, "messages[1]"),
        ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "a"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "critic", "content": "a"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        (
            {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}},
            "streamFunctionCall",
        ),
    ],
)
def test_what_google_lacks_is_refused_with_its_place(request_: dict[str, Any], place: str) -> None:
    assert place in refused(**request_)


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:;base64,AA=="}}, "file.filename"),
        ({"type": "file", "file": {"file_id": "file-123"}}, "content[0]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,AA", "detail": "auto"}}, "content[0]"),
        ({"type": "image_url", "image_url": {"url": "https://host/a.png", "detail": "low"}}, "detail"),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, "cache_control"),
        ({"type": "input_text", "text": "a"}, "content[0]"),
    ],
)
def test_parts_that_google_lacks_are_refused_with_their_place(part: dict[str, Any], place: str) -> None:
    assert place in refused(messages=[{"role": "user", "content": [part]}])


def test_vertex_names_files() -> None:
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}
    (content,) = sent(VERTEX, messages=[{"role": "user", "content": [file]}])["contents"]
    assert content["parts"][0]["inlineData"]["displayName"] == "a.pdf"


def test_the_request_is_left_as_it_was() -> None:
    request: dict[str, Any] = {
        "messages": [called(("c", "a", {})), *MESSAGES],
        "generationConfig": {"seed": 1},
        "temperature": 1,
    }
    before = json.dumps(request)
    sent(**request)
    assert json.dumps(request) == before
