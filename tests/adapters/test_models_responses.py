"""OpenAI's Responses API as a protocol of ``model``: what is sent, what comes back, what goes back on the next turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters import models_responses
from agentloom.adapters.models import backend
from agentloom.adapters.models_responses_answer import Reader
from agentloom.adapters.models_route import Route, find_route
from agentloom.errors import ModelError, ProviderError
from agentloom.replay.answered import answer_of
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble
from agentloom.sync import model
from agentloom.testing import FakeProvider, Raw, Says, Wants
from tests.adapters.seam import tape

ROUTE = Route("responses", "openai", "gpt-5")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    yield
    backend.close()


def sent(stream: bool = False, **request: Any) -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": "hi"}], **request, "api": "responses"}
    return models_responses.body(asked, ROUTE, stream=stream)


def refused(**request: Any) -> str:
    with pytest.raises(ModelError) as caught:
        sent(**request)
    assert caught.value.kind == "bad_request"
    assert caught.value.hint
    return str(caught.value)


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_a_conversation_becomes_items() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
                },
                {"type": "input_image", "file_id": "file_1"},
            ],
        },
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "a.png"}]},
        {"type": "item_reference", "id": "msg_1"},
        {"role": "assistant", "content": None, "refusal": "no"},
    ]
    assert sent(messages=messages)["input"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
                {"type": "input_image", "file_id": "file_1"},
            ],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "run", "input": "ls"},
        {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "a.png"}],
        },
        {"type": "item_reference", "id": "msg_1"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]


def test_tools_and_the_choice_among_them() -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}}
    tools = [
        {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "function": {"name": "exact", "parameters": SCHEMA, "strict": True}},
        {"type": "custom", "custom": {"name": "run", "format": grammar}},
        {"type": "web_search"},
        {"type": "function", "name": "own", "parameters": SCHEMA},
    ]
    body = sent(tools=tools, tool_choice={"type": "function", "function": {"name": "look"}})
    assert body["tools"] == [
        # In chat completions a function is not strict unless it says so; here it would be.
        {"type": "function", "name": "look", "description": "d", "parameters": SCHEMA, "strict": False},
        {"type": "function", "name": "exact", "parameters": SCHEMA, "strict": True},
        {
            "type": "custom",
            "name": "run",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
        },
        {"type": "web_search"},
        {"type": "function", "name": "own", "parameters": SCHEMA},
    ]
    assert body["tool_choice"] == {"type": "function", "name": "look"}
    assert sent(tool_choice="required")["tool_choice"] == "required"
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]}
    assert sent(tool_choice={"type": "allowed_tools", "allowed_tools": allowed})["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "look"}],
    }


def test_parameters_under_their_names_there() -> None:
    body = sent(
        stream=True,
        max_completion_tokens=99,
        reasoning_effort="low",
        reasoning={"summary": "auto"},
        verbosity="low",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
        },
        logprobs=True,
        top_logprobs=2,
        include=["reasoning.encrypted_content"],
        previous_response_id="resp_1",
        store=False,
        stream_options={"include_usage": True, "include_obfuscation": False},
        n=1,
        timeout=3,
    )
    assert body == {
        "model": "gpt-5",
        "input": [{"role": "user", "content": "hi"}],
        "max_output_tokens": 99,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True},
            "verbosity": "low",
        },
        "top_logprobs": 2,
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "previous_response_id": "resp_1",
        "store": False,
        "stream_options": {"include_obfuscation": False},
    }
    assert sent(response_format={"type": "json_object"})["text"] == {"format": {"type": "json_object"}}


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"seed": 1}, "seed"),
        ({"stop": ["x"]}, "stop"),
        ({"n": 2}, "n"),
        ({"logit_bias": {}}, "logit_bias"),
        ({"input": "x"}, "input"),
        ({"background": True}, "background"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"messages": [{"role": "user", "content": "x", "name": "ann"}]}, "messages[0].name"),
        ({"messages": [{"role": "bard", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, "messages[0].content[0]"),
    ],
)
def test_what_it_has_no_word_for_is_refused_with_its_place(request_: dict[str, Any], place: str) -> None:
    assert f"Responses API: {place}: " in refused(**request_)


def test_it_is_asked_for_by_name() -> None:
    route = find_route({"model": "gpt-5", "api": "responses"})
    assert (route.api, route.provider, route.model) == ("responses", "openai", "gpt-5")
    assert find_route({"model": "gpt-5", "api": "chat"}).api == find_route({"model": "gpt-5"}).api == "openai"
    with pytest.raises(ProviderError, match="no api 'answers'"):
        find_route({"model": "gpt-5", "api": "answers"})
    with pytest.raises(ProviderError, match="anthropic has no Responses API"):
        find_route({"model": "anthropic:x", "api": "responses", "base_url": "http://127.0.0.1:1"})


# -- what comes back -------------------------------------------------------------------------------------------------


def test_an_answer_goes_back_as_it_came() -> None:
    script = [Says("Let me look.", tools=[Wants("look", {"id": 8})], reasoning="hm"), Says("It costs $40.")]
    with FakeProvider(script) as fake:
        request: dict[str, Any] = {
            "model": "openai:gpt-5", "api": "responses", "base_url": fake.openai_url,
            "messages": [{"role": "user", "content": "What does 8 cost?"}],
        }  # fmt: skip
        first = Answer(backend.complete_sync(request))
        messages = [*request["messages"], first.message, first.tool_calls[0].result("40")]
        second = Answer(assemble(backend.stream_sync({**request, "messages": messages})))
        assert [seen.path for seen in fake.seen] == ["/v1/responses"] * 2
        items = fake.seen[1].body["input"]
    assert (first.text, first.reasoning, first.finish_reason) == ("Let me look.", "hm", "tool_calls")
    assert second.text == "It costs $40."
    assert [item.get("type") for item in items] == [
        None,
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert items[1]["encrypted_content"] == "enc-fake-1"
    assert items[3]["call_id"] == items[4]["call_id"] == first.tool_calls[0].id


def test_blocks_of_another_protocol_are_left_where_they_belong() -> None:
    said = {
        "role": "assistant",
        "content": "hi",
        "blocks": [{"type": "thinking", "thinking": "x", "signature": "s"}],
    }
    own = {
        "role": "assistant",
        "content": "hi",
        "blocks": {"mistral": {"content": [{"type": "text", "text": "hi"}]}},
    }
    plain = {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    assert sent(messages=[said, own])["input"] == [plain, plain]


def whole(**fields: Any) -> dict[str, Any]:
    return {
        "object": "response",
        "id": "resp_1",
        "model": "m",
        "status": "completed",
        "error": None,
        "output": [],
        **fields,
    }


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": list(parts),
    }


def test_a_refusal_an_incomplete_answer_and_the_items_of_server_tools() -> None:
    refusal = models_responses.answer(whole(output=[message({"type": "refusal", "refusal": "I will not."})]))
    assert (refusal["refusal"], refusal["content"], refusal["finish_reason"], refusal["blocks"]) == (
        "I will not.", None, "stop", None,
    )  # fmt: skip
    for reason, expected in (
        ("max_output_tokens", "length"),
        ("content_filter", "content_filter"),
        ("new", "new"),
    ):
        cut = models_responses.answer(whole(status="incomplete", incomplete_details={"reason": reason}))
        assert (cut["finish_reason"], cut["native_finish_reason"]) == (expected, reason)
        assert cut["info"]["incomplete_details"] == {"reason": reason}
    cited = message(
        {"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "url": "u"}]}
    )
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    answer = models_responses.answer(whole(output=[search, cited]))
    assert answer["blocks"] == {"responses": [search, cited]}
    assert models_responses.body({"messages": [Answer(answer).message]}, ROUTE, stream=False)["input"] == [
        search,
        cited,
    ]


def test_parts_of_a_summary_are_told_apart() -> None:
    summary = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": summary},
        {"type": "reasoning", "id": "rs_2", "summary": summary[:1]},
    ]
    assert models_responses.answer(whole(output=items))["reasoning"] == "one\n\ntwo\n\none"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (whole(status="failed", error={"code": "server_error", "message": "oops"}), "server"),
        (whole(status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), "rate_limit"),
        (
            whole(status="failed", error={"code": "invalid_prompt", "message": "against our usage policy"}),
            "bad_request",
        ),
        (whole(status="cancelled"), "server"),
        (whole(status="in_progress"), "malformed"),
        ({"object": "response", "id": "x"}, "malformed"),
        ({"error": {"code": 429, "message": "slow"}}, "rate_limit"),
        (whole(output=[7]), "malformed"),
    ],
)
def test_failures_in_a_body_with_a_good_status(body: dict[str, Any], kind: str) -> None:
    with FakeProvider([Raw(json.dumps(body).encode())]) as fake, pytest.raises(ModelError) as caught:
        backend.complete_sync(
            {"model": "openai:m", "api": "responses", "messages": [], "base_url": fake.openai_url}
        )
    assert caught.value.kind == kind
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}, "rate_limit"),
        ({"type": "error", "code": None, "message": "something", "param": None}, "server"),
        ({"type": "error", "error": {"type": "insufficient_quota", "message": "no credit"}}, "quota"),
        ({"type": "response.failed", "response": whole(error={"code": "server_is_overloaded"})}, "overload"),
        ({"type": "response.output_text.delta", "delta": "no place"}, "malformed"),
    ],
)  # fmt: skip
def test_failures_in_a_stream(event: dict[str, Any], kind: str) -> None:
    begin = {"type": "response.created", "response": whole(status="in_progress")}
    data = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in (begin, event))
    with FakeProvider([Raw(data, 200, {"content-type": "text/event-stream"})]) as fake:
        deltas = backend.stream_sync(
            {"model": "openai:m", "api": "responses", "messages": [], "base_url": fake.openai_url}
        )
        with pytest.raises(ModelError) as caught:
            list(deltas)
    assert caught.value.kind == kind


def test_a_server_that_sends_whole_items_only() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": whole(status="in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": call["arguments"]},
        {"type": "response.output_item.done", "output_index": 0, "item": call},
        {"type": "response.brand_new.event", "what": 1},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": message({"type": "output_text", "text": "x"}),
        },
        {"type": "response.completed", "response": whole()},
    ]
    reader = Reader()
    answer = assemble(delta for event in events for delta in reader.read(event))
    assert reader.complete
    assert (answer["content"], answer["tool_calls"][0]["function"]) == (
        "x",
        {"name": "look", "arguments": '{"a": 1}'},
    )


def test_pieces_that_the_whole_contradicts_give_way_to_it() -> None:
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": whole(status="in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": message()},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "It ran."},
        {
            "type": "response.output_text.done",
            "output_index": 0,
            "content_index": 0,
            "text": "It ran in time.",
        },
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": message({"type": "output_text", "text": "It ran in time."}),
        },
        {"type": "response.completed", "response": whole()},
    ]
    reader = Reader()
    deltas = [delta for event in events for delta in reader.read(event)]
    assert assemble(deltas)["content"] == "It ran in time."
    told = answer_of(None, list(deltas))
    assert told is not None
    assert told.text == "It ran in time."
    assert {"whole": {"content": "It ran in time."}} in deltas
    events[2]["delta"] = "It ran"  # the beginning of it: what is missing is given on, nothing is taken back
    reader = Reader()
    deltas = [delta for event in events for delta in reader.read(event)]
    assert assemble(deltas)["content"] == "It ran in time."
    assert not any("whole" in delta for delta in deltas)


# -- inside a run ----------------------------------------------------------------------------------------------------


def conversation(url: str) -> list[Any]:
    ask: dict[str, Any] = {"api": "responses", "base_url": url, "include": ["reasoning.encrypted_content"]}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What does 8 cost?"}]
    first = model("openai:gpt-5", messages, **ask)
    messages += [first.message, first.tool_calls[0].result("40")]
    with model("openai:gpt-5", messages, stream=True, **ask) as stream:
        pieces = list(stream)
        return [first.reasoning, pieces, stream.answer.raw["usage"], stream.answer.id]


def test_a_run_is_recorded_and_replayed() -> None:
    usage = (12, 4, 6, 2)
    script = [
        Says(tools=[Wants("look", {"id": 8})], reasoning="hm", usage=usage),
        Says("It costs $40.", usage=usage),
    ]
    done = tape(conversation, script)
    assert done.report.verdict == "identical"
    assert done.live == done.again
    assert done.live[:2] == ["hm", ["It ", "costs ", "$40."]]
    counts = {"input": 12, "cached": 4, "cache_write": 0, "output": 6, "reasoning": 2}
    assert [call.usage for call in done.calls] == [counts, counts]


def test_llmock_speaks_it_too() -> None:
    testing: Any = pytest.importorskip("llmock.testing", reason="llmock (extra dev) is not installed")
    simulation: Any = pytest.importorskip("llmock.simulation")
    scenarios: Any = pytest.importorskip("llmock.scenarios")
    with testing.LLMockServer(responses=simulation.MockResponseSettings()) as server:
        request: dict[str, Any] = {
            "model": "openai:gpt-5", "api": "responses", "base_url": server.base_url("openai"),
            "messages": [{"role": "user", "content": "What does 812 cost?"}],
        }  # fmt: skip
        for answer in (
            Answer(backend.complete_sync(request)),
            Answer(assemble(backend.stream_sync(request))),
        ):
            assert (answer.finish_reason, answer.model) == ("stop", "gpt-5")
            assert answer.text
            assert answer.usage is not None
            assert answer.usage.output
        server.state.scenarios.add(scenarios.Fail(503))
        with pytest.raises(ModelError) as caught:
            backend.complete_sync(request)
        assert (caught.value.kind, caught.value.status) == ("overload", 503)
        server.state.scenarios.add(scenarios.StreamFault("truncate"))
        with pytest.raises(ModelError) as caught:
            list(backend.stream_sync(request))
        assert caught.value.kind == "connection"
