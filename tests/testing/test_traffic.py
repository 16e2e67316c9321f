"""Files of recorded traffic: every container, every form that their writers use, and what is broken or hostile."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import NotSupported, TrafficError
from agentloom.testing import Exchange, Traffic, read_traffic
from agentloom.testing.traffic import CONTAINERS
from agentloom.testing.traffic_bare import event_message, sse
from tests.corpus.files import CORPUS, WHY, rows, traffic

JSON = {"content-type": ["application/json"]}
REQUEST = {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "headers": JSON}


def read(
    tmp_path: Path, data: str | bytes | dict[str, Any] | list[Any], container: str | None = None
) -> Traffic:
    """The file's name says nothing: what it is shows in what it holds."""
    path = tmp_path / "traffic"
    path.write_bytes(
        data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
    )
    return read_traffic(path, container)


def only(found: Traffic) -> Exchange:
    (one,) = found.exchanges
    return one


def vcr(body: Any, response: Any = None, **request: Any) -> dict[str, Any]:
    answer = response or {"status": {"code": 200, "message": "OK"}, "headers": JSON, "body": {"string": "{}"}}
    return {
        "interactions": [{"request": REQUEST | {"body": body} | request, "response": answer}],
        "version": 1,
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"a": "é"}', b'{"a": "\xc3\xa9"}'),
        (None, b""),
        ({"string": '{"a": 1}', "encoding": "UTF-8"}, b'{"a": 1}'),
        ({"base64_string": base64.b64encode(b"\xff\x00").decode()}, b"\xff\x00"),
        ({"model": "m", "string": "kept"}, b'{"model": "m", "string": "kept"}'),
        ([1], b"[1]"),
        ("\ud83d", b"\xed\xa0\xbd"),
    ],
)
def test_the_bodies_of_cassettes(tmp_path: Path, body: Any, expected: bytes) -> None:
    one = only(read(tmp_path, vcr(body)))
    assert one.request_body == expected
    assert (one.method, one.path, one.status, one.body) == ("POST", "/v1/chat/completions", 200, b"{}")


@pytest.mark.parametrize(
    ("response", "status", "expected"),
    [
        ({"status": {"code": 429, "message": "Slow"}, "headers": {}, "body": {"string": "no"}}, 429, b"no"),
        ({"status_code": 201, "http_version": "HTTP/1.1", "headers": {}, "content": "made"}, 201, b"made"),
        ({"status": "404", "headers": None, "body": "gone"}, 404, b"gone"),
        ({"status": {"code": 200}, "headers": {}, "parsed_body": {"a": "é"}}, 200, b'{"a": "\xc3\xa9"}'),
        ({"status": {"code": 200}, "headers": {}, "body": "base64:/wA="}, 200, b"\xff\x00"),
        ({"status": {"code": 204}, "headers": {}, "body": None}, 204, b""),
    ],
)
def test_the_answers_of_cassettes(tmp_path: Path, response: Any, status: int, expected: bytes) -> None:
    one = only(read(tmp_path, vcr("{}", response)))
    assert (one.status, one.body) == (status, expected)


YAML = """
interactions:
- request:
    body: !!binary |
      eyJhIjogMX0=
    headers:
      ? !!python/object/apply:multidict._multidict.istr
      - Content-Type
      : - application/json
      X-Two: one
    method: POST
    uri: https://api.openai.com/v1/chat/completions
  response:
    body: {string: !!python/unicode 'data: {}'}
    headers: {Date: [2024-02-30], content-type: [text/event-stream]}
    status: {code: 200, message: OK}
"""


def test_tags_of_python_are_plain_values(tmp_path: Path) -> None:
    one = only(read(tmp_path, YAML))
    assert one.request_body == b'{"a": 1}'
    assert dict(one.request_headers) == {"Content-Type": "application/json", "X-Two": "one"}
    assert one.header("date") == "2024-02-30"
    assert one.streamed


@pytest.mark.parametrize(
    "call",
    [
        "!!python/object/apply:os.system ['touch MARK']",
        "!!python/object/new:os.system ['touch MARK']",
        "!!python/object/apply:subprocess.Popen [[touch, MARK]]",
        '!!python/object/new:tuple [!!python/object/new:map [!!python/name:eval , [\'open("MARK","w")\']]]',
        "!!python/module:antigravity ''",
        "!ruby/object:Gem::Installer {i: x}",
    ],
)
def test_nothing_of_a_file_is_executed(tmp_path: Path, call: str) -> None:
    mark = tmp_path / "mark"
    text = YAML.replace("2024-02-30", call.replace("MARK", str(mark)))
    before = set(sys.modules)
    with contextlib.suppress(TrafficError):  # what such a value leaves behind need not be a header
        only(read(tmp_path, text))
    assert not mark.exists()
    assert "antigravity" not in set(sys.modules) - before


def test_pairs_of_lists(tmp_path: Path) -> None:
    request = REQUEST | {"uri": "**REDACTED**", "body": "{}"}
    answer = {"status": {"code": 200}, "headers": {"content-type": "**REDACTED**"}, "body": {"string": "{}"}}
    found = read(tmp_path, {"requests": [request, request], "responses": [answer]})
    assert found.container == "vcr2"
    assert only(found).path is None
    assert "2 requests and 1 responses" in found.skipped[0]
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress((tmp_path / "traffic").read_bytes()))
    assert read_traffic(packed).exchanges[0].body == b"{}"


def har(content: dict[str, Any], status: int = 200) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": "POST",
        "url": "https://a.example/v1/x?alt=sse",
        "headers": [{"name": "A", "value": "b"}],
    }
    request["postData"] = {"mimeType": "application/json", "text": '{"a": 1}'}
    response = {"status": status, "headers": [], "content": content}
    return {"log": {"version": "1.2", "entries": [{"request": request, "response": response}]}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"mimeType": "application/json", "text": "{}"}, b"{}"),
        ({"mimeType": "audio/mpeg", "text": "/wA=", "encoding": "base64"}, b"\xff\x00"),
        ({"mimeType": "audio/mpeg", "text": '["/w==", "AA=="]', "encoding": "base64"}, b"\xff\x00"),
        ({"mimeType": "application/json", "text": "[1]"}, b"[1]"),
        ({"mimeType": "application/json", "size": 0}, b""),
    ],
)
def test_archives_of_browsers(tmp_path: Path, content: dict[str, Any], expected: bytes) -> None:
    one = only(read(tmp_path, har(content)))
    assert (one.body, one.query, one.request()) == (expected, (("alt", "sse"),), {"a": 1})
    assert one.content_type == content["mimeType"]


def test_an_aborted_request_is_skipped_and_said(tmp_path: Path) -> None:
    found = read(tmp_path, har({}, status=0))
    assert found.exchanges == ()
    assert "aborted" in found.skipped[0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"response": {"a": 1}}, b'{"a": 1}'),
        ({"response": "text"}, b"text"),
        ({"response": ""}, b""),
        ({"response": "ff00", "responseIsBinary": True}, b"\xff\x00"),
        ({"response": ["1f8b", "00ff"], "rawHeaders": ["Content-Encoding", "gzip"]}, b"\x1f\x8b\x00\xff"),
        ({"response": [{"a": 1}]}, b'[{"a": 1}]'),
    ],
)
def test_definitions_of_nock(tmp_path: Path, fields: dict[str, Any], expected: bytes) -> None:
    item = {
        "scope": "https://api.x.ai:443",
        "method": "post",
        "path": "/v1/x",
        "body": {"a": 1},
        "status": 200,
    }
    one = only(read(tmp_path, [item | fields]))
    assert (one.body, one.method, one.path, one.request()) == (expected, "POST", "/v1/x", {"a": 1})


def test_a_pair_of_datadogs_test_agent(tmp_path: Path) -> None:
    pair = {
        "request": {
            "method": "POST",
            "url": "https://a.example/v1/x",
            "headers": {"A": "b"},
            "body": '{"a": 1}',
        },
        "response": {"status": {"code": 200, "message": ""}, "headers": {"C": "d"}, "body": "base64:/wA="},
    }
    found = read(tmp_path, pair)
    assert (found.container, only(found).body, only(found).header("c")) == ("ddvcr", b"\xff\x00", "d")


def llama(body: Any, **more: Any) -> dict[str, Any]:
    asked = {"model": "m", "extra_body": {"project": "p"}, "timeout": 3}
    url = "https://a.example/v1/v1/chat/completions"
    return {
        "request": {"method": "POST", "url": url, "headers": {}, "body": asked},
        "response": {"body": body} | more,
    }


def test_objects_of_an_sdk_go_back_on_the_wire(tmp_path: Path) -> None:
    chunk = {"object": "chat.completion.chunk", "choices": []}
    one = only(read(tmp_path, llama([{"__type__": "x", "__data__": chunk}] * 2, is_streaming=True)))
    assert one.body == sse([chunk, chunk])
    assert one.body.endswith(b"data: [DONE]\n\n")
    assert (one.streamed, one.path) == (True, "/v1/chat/completions")
    assert one.request() == {"model": "m", "project": "p"}
    whole = only(read(tmp_path, llama({"__type__": "x", "__data__": {"a": 1}})))
    assert (whole.body, whole.streamed) == (b'{"a": 1}', False)
    assert read(tmp_path, llama(None, is_streaming=False, is_exception=True)).skipped


def test_frames_of_a_websocket(tmp_path: Path) -> None:
    items = [{"direction": "sent", "data": {"type": "a"}}, {"direction": "received", "data": "x"}]
    found = read(tmp_path, {"interactions": items})
    assert [(frame.direction, frame.data) for frame in found.frames] == [
        ("sent", {"type": "a"}),
        ("received", "x"),
    ]


CHUNK = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "a"}}]}
START = {"type": "message_start", "message": {}}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([CHUNK], sse([CHUNK])),
        (
            [START, {"type": "ping"}],
            b'event: message_start\ndata: {"type": "message_start", "message": {}}\n\n',
        ),
        ([{"messageStart": {"role": "assistant"}}], event_message("messageStart", {"role": "assistant"})),
        ([{"candidates": []}] * 2, b'data: {"candidates": []}\n\n'),
    ],
)
def test_events_one_a_line(tmp_path: Path, lines: list[Any], expected: bytes) -> None:
    one = only(read(tmp_path, "\n".join(map(json.dumps, lines)) + "\n"))
    assert one.body.startswith(expected)
    assert (one.streamed, one.url, one.request_body) == (True, "", None)


def test_an_event_message_is_what_aws_describes() -> None:
    data = event_message("throttlingException", {"message": "é"})
    assert int.from_bytes(data[:4], "big") == len(data)
    assert b":exception-type" in data
    assert b"\xc3\xa9" in data


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": "a"}}]},
        {"object": "response", "output": []},
        {"type": "message", "content": []},
        {"candidates": []},
        {"output": {"message": {}}, "usage": {}},
        {"message": {"role": "assistant"}, "done": True},
        {"error": {"message": "no"}},
    ],
)
def test_a_bare_answer_is_known_by_its_form(tmp_path: Path, body: dict[str, Any]) -> None:
    assert only(read(tmp_path, body)).json() == body


def test_any_bytes_are_an_answer_where_that_is_said(tmp_path: Path) -> None:
    assert only(read(tmp_path, b"\x00\x01words", "resp_json")).body == b"\x00\x01words"
    assert only(read(tmp_path, b"ID3\x04sound")).content_type == "audio/mpeg"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"PK\x03\x04", "no recorded HTTP traffic"),
        (b"\x00\x01\x02", "no recorded HTTP traffic"),
        (b"just words", "no recorded HTTP traffic"),
        (b'{"trajectory": []}', "no recorded HTTP traffic"),
        (b"[]", "no recorded HTTP traffic"),
        (b'{"interactions": ', "JSON does not hold together"),
        (b"[" * 100_000, "nested too deep"),
        (b"a: [1\nb: 2", "YAML does not hold together (line 2"),
        (b"- " * 100_000 + b"x", "nesting depth"),
        (b"a: " + b"9" * 5000, "a value of the YAML cannot be read"),
        (b"a: !!binary '%%%'", "no base64"),
        (b"interactions: [{request: {method: GET}, response: {headers: {a: {b: c}}}}]", "a header is dict"),
        (b"\x1f\x8bnot gzip", "gzip file is broken"),
        (gzip.compress(b"x" * 5000, mtime=0)[:-9], "ends in the middle"),
        (b"interactions: 3", "no recorded HTTP traffic"),
        (b"interactions: [3]", "exchange 0: the exchange is int"),
        (b"interactions: [{request: 1}]", "exchange 0: request is int"),
        (
            b"interactions: [{request: {method: POST}, response: {status: {code: x}}}]",
            "the status 'x' is no number",
        ),
        (b"interactions: [{request: {method: POST}, response: {status: 700}}]", "an answer of status 700"),
        (b"interactions: [{request: {method: 'A\\r\\nB'}, response: {}}]", "the method is"),
        (b"interactions: [{request: {method: GET}, response: {headers: 3}}]", "response.headers is neither"),
        (b"interactions: [{request: {method: GET}, response: {body: 3}}]", "response.body is int"),
        (
            b"interactions: [{request: {method: GET, body: {base64_string: '%'}}, response: {}}]",
            "is no base64",
        ),
    ],
)
def test_what_is_broken_is_an_error_that_says_where(tmp_path: Path, data: bytes, says: str) -> None:
    start = time.perf_counter()
    with pytest.raises(TrafficError) as caught:
        read(tmp_path, data)
    assert says in str(caught.value)
    assert "traffic" in caught.value.message
    assert time.perf_counter() - start < 10


LAUGHING = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
MERGING = "".join(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f"a0: &a0 [x]\n{LAUGHING}interactions: [{{request: {{body: *a9}}, response: {{}}}}]",
            "too large",
        ),
        (
            f"a0: &a0 [x]\n{LAUGHING}interactions: [{{request: {{method: *a9}}, response: {{}}}}]",
            "the method is",
        ),
        (
            f"a0: &a0 [x]\n{LAUGHING}interactions: [{{request: {{method: A}}, response: {{status: *a9}}}}]",
            "the status",
        ),
        (
            f"a0: &a0 [x]\n{LAUGHING}interactions: [{{request: {{headers: {{a: *a9}}}}, response: {{}}}}]",
            "header is",
        ),
        (f"a0: &a0 {{x: 1}}\n{MERGING}interactions: [*a9]", "request is NoneType"),
    ],
)
def test_a_laughing_document_is_refused_in_bounded_time(tmp_path: Path, text: str, says: str) -> None:
    """Nine levels of nine aliases would be 387 million items when written out."""
    start = time.perf_counter()
    with pytest.raises(TrafficError, match=says):
        read(tmp_path, text)
    assert time.perf_counter() - start < 20


def test_limits_and_names(tmp_path: Path) -> None:
    path = tmp_path / "traffic"
    path.write_bytes(gzip.compress(b" " * 10_000))
    with pytest.raises(TrafficError, match="holds more than 1,000 bytes"):
        read_traffic(path, limit=1000)
    with pytest.raises(TrafficError, match="cannot be read: No such file"):
        read_traffic(tmp_path / "gone")
    with pytest.raises(NotSupported, match="no container 'vhs'"):
        read_traffic(path, "vhs")
    with pytest.raises(TrafficError, match="is no har: by its fields it is vcr"):
        read(tmp_path, vcr("{}"), "har")


def test_reading_needs_yaml_only_for_yaml() -> None:
    code = "import sys\nfrom agentloom.testing import Player\nassert 'yaml' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_every_file_of_the_corpus_gives_what_its_manifest_says() -> None:
    assert {row.container for row in rows()} == set(CONTAINERS) - {"ddvcr"}
    for row in rows():
        found = traffic(row)
        assert found.container == row.container, row.file
        assert not found.skipped, row.file
        if row.count:
            assert len(found.exchanges) + len(found.frames) == row.count, row.file
        else:
            assert len(found.exchanges) == 1, row.file


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
def test_what_is_no_traffic_is_refused() -> None:
    known = {row.file for row in rows()}
    others = [path for path in CORPUS.iterdir() if path.is_file() and path.name not in known]
    refused = 0
    for path in others:
        try:
            found = read_traffic(path)
        except TrafficError:
            refused += 1
        else:  # a bare answer that the manifest lists as another file of JSON
            assert found.container == "resp_json", path.name
    assert refused > 30
