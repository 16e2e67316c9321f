"""Answers kept without their requests, in the forms that recorders of fixtures use; and what is no HTTP exchange."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentloom.testing import Traffic, read_traffic


def read(tmp_path: Path, data: str | dict[str, Any], container: str | None = None) -> Traffic:
    path = tmp_path / "traffic"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return read_traffic(path, container)


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def test_what_azure_says_of_the_prompt_is_the_first_event_of_a_stream(tmp_path: Path) -> None:
    first: dict[str, Any] = {"choices": [], "object": "", "prompt_filter_results": []}
    piece = {"choices": [{"index": 0, "delta": {"content": "a"}}], "object": "chat.completion.chunk"}
    found = read(tmp_path, lines(first, piece))
    assert found.container == "chunks"
    assert found.exchanges[0].content == (
        b"data: %s\n\ndata: %s\n\ndata: [DONE]\n\n" % (json.dumps(first).encode(), json.dumps(piece).encode())
    )


def test_lines_of_ollama_stay_lines(tmp_path: Path) -> None:
    events = [{"message": {"content": "a"}, "done": False}, {"message": {"content": ""}, "done": True}]
    (one,) = read(tmp_path, lines(*events)).exchanges
    assert (one.content_type, one.streamed) == ("application/x-ndjson", True)
    assert [json.loads(line) for line in one.content.splitlines()] == events


def test_one_object_of_ollama_is_a_whole_answer(tmp_path: Path) -> None:
    (one,) = read(tmp_path, {"model": "m", "response": "a", "done": True}).exchanges
    assert (one.content_type, one.streamed) == ("application/json", False)


def test_an_event_type_names_the_event(tmp_path: Path) -> None:
    (one,) = read(tmp_path, lines({"event_type": "step.start"}, {"event_type": "step.stop"})).exchanges
    assert one.content.startswith(b'event: step.start\ndata: {"event_type": "step.start"}\n\n')


def test_named_chunks_may_say_anything(tmp_path: Path) -> None:
    (one,) = read(tmp_path, lines({"unheard": 1}, {"of": 2}), "chunks").exchanges
    assert one.content == b'data: {"unheard": 1}\n\ndata: {"of": 2}\n\n'
    assert one.streamed


@pytest.mark.parametrize(
    ("kind", "body", "content", "container"),
    [
        ("text/event-stream", "data: {}\n\n", b"data: {}\n\n", "chunks"),
        ("application/json", '{"a": 1}', b'{"a": 1}', "resp_json"),
        ("application/json", {"a": "é"}, '{"a": "é"}'.encode(), "resp_json"),
    ],
)
def test_an_answer_with_its_status_and_headers(
    tmp_path: Path, kind: str, body: Any, content: bytes, container: str
) -> None:
    found = read(
        tmp_path, {"status": 429, "headers": {"content-type": kind, "retry-after": "3"}, "body": body}
    )
    (one,) = found.exchanges
    assert (found.container, one.status, one.content, one.content_type) == (container, 429, content, kind)
    assert one.header("retry-after") == "3"
    assert one.request_body is None


def test_lines_of_a_stream_that_no_sdk_read(tmp_path: Path) -> None:
    request = {"method": "POST", "url": "https://example.test/v1/answers", "body": {"stream": True}}
    body = ["event: start", 'data: {"a": 1}', "", "data: [DONE]", ""]
    found = read(tmp_path, {"request": request, "response": {"body": body, "is_streaming": True}})
    (one,) = found.exchanges
    assert (found.container, one.streamed) == ("llamastack", True)
    assert one.content == b'event: start\ndata: {"a": 1}\n\ndata: [DONE]\n\n'


def test_what_is_no_http_exchange_is_left_out_and_said(tmp_path: Path) -> None:
    tool: dict[str, Any] = {
        "request": {"tool_name": "search"},
        "response": {"body": {"__data__": {}}, "is_streaming": False},
    }
    found = read(tmp_path, tool)
    assert (found.exchanges, found.skipped) == (
        (),
        ("traffic#0: a call of the tool 'search', no HTTP exchange",),
    )
    message: dict[str, Any] = {
        "request_sample": {"json": {}, "raw": "AA=="},
        "response_sample": {"raw": "AA=="},
    }
    found = read(tmp_path, {"interactions": [message], "version": 1})
    assert found.skipped == ("traffic#0: a message of gRPC, no HTTP exchange",)
