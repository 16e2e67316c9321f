"""Case 4: the same events come back, in the same order and of the same types, and the SDK assembles the same message.

Every chat completion of the corpus, streamed and whole, bare = recording = replay; then the same streams in every shape
that the wire may give them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.three import streamed, streamed_async, three_times, whole, whole_async
from tests.cases.traffic import Exchange, exchanges
from tests.cases.wire import Sent
from tests.corpus.files import CORPUS, WHY, rows

EXCHANGES = exchanges()
STREAMS = [one for one in EXCHANGES if one.streamed and one.status == 200]


def _short(every: list[Exchange]) -> list[Exchange]:
    """An exchange of each kind: the shortest ones, each with a tag that the ones before it do not have."""
    known: set[str] = set()
    chosen: list[Exchange] = []
    for one in sorted(every, key=lambda one: len(one.data)):
        kinds = {kind for kind in one.kinds if not kind.startswith(("n=", "status"))}
        if kinds - known:
            known |= kinds
            chosen.append(one)
    return chosen


corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)


def _event(delta: Any, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None} | more
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _argument(text: str) -> bytes:
    return _event({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


SEVEN = [
    _event({"role": "assistant", "content": None, "reasoning_content": "It is an order, so I look it up."}),
    b": ping\n\n",
    _event({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f"}}]}),
    _argument('{"a"'),
    _argument(': "é'),
    _argument('\U0001f600"}'),
    _event({}, finish_reason="tool_calls"),
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}\n\n',
]  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 7])
def test_seven_events_come_back_as_seven(size: int) -> None:
    answer = Sent(b"".join(SEVEN) + b"data: [DONE]\n\n", slice=size)
    trace = three_times(lambda url: streamed(url, {"model": "m", "messages": []}), answer)
    events, raised, message = trace.output
    assert raised == ["NoneType", None]
    assert len(events) - 1 == 7
    kept = [chunk for chunk in trace.calls[0].chunks if "json" in chunk]
    assert [chunk["json"] for chunk in kept] == [
        json.loads(event[6:]) for event in SEVEN if event[0:1] == b"d"
    ]
    function = message[1]["fields"]["choices"][1]["fields"]["message"]["fields"]["tool_calls"][1]["fields"][
        "function"
    ]
    assert function["fields"]["arguments"] == ["str", '{"a": "é😀"}']


def test_seven_events_come_back_as_seven_async() -> None:
    async def program(url: str) -> Any:
        return await streamed_async(url, {"model": "m", "messages": []})

    trace = three_times(program, Sent(b"".join(SEVEN) + b"data: [DONE]\n\n", slice=3))
    assert len(trace.output[0]) - 1 == 7


@corpus
def test_the_manifest_is_covered() -> None:
    """Each file that holds chat completions gives at least one exchange, and the kinds that matter are there."""
    found = {one.name.partition("#")[0][-60:] for one in EXCHANGES}
    names = {row.file[-60:] for row in rows() if "chat.completions" in row.apis}
    # A batch: its requests name the API, but no request goes to it.
    (batch,) = names - found
    assert batch.endswith("answers_staged_chats_0f3c6es_the_answers_to_their_conversations.yml"[-60:])
    assert len(EXCHANGES) > 90
    assert len(STREAMS) > 30
    kinds = frozenset[str]().union(*(one.kinds for one in STREAMS))
    wanted = {
        "empty_choices_chunk",
        "n_choices_stream",
        "sse_comment",
        "midstream_error",
        "sse_no_done",
        "reasoning",
    }
    assert wanted <= kinds


@corpus
@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in EXCHANGES])
def test_every_exchange_of_the_corpus(one: Exchange) -> None:
    answer = Sent(one.data, one.status, {"content-type": one.content_type}, slice=400 if one.streamed else 0)
    program = streamed if one.streamed else whole
    three_times(lambda url: program(url, one.request()), answer)


@corpus
@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in _short(EXCHANGES)])
def test_an_exchange_of_each_kind_async(one: Exchange) -> None:
    """Every stream is asked for by an async client in test_case_04_script.py."""
    program = streamed_async if one.streamed else whole_async

    async def run(url: str) -> Any:
        return await program(url, one.request())

    three_times(run, Sent(one.data, one.status, {"content-type": one.content_type}))


def _crlf(data: bytes) -> Sent:
    return Sent(data.replace(b"\n", b"\r\n"), slice=11)


def _cr(data: bytes) -> Sent:
    return Sent(data.replace(b"\n", b"\r"), slice=5)


def _bom(data: bytes) -> Sent:
    return Sent(b"\xef\xbb\xbf" + data)


def _comments(data: bytes) -> Sent:
    return Sent(b": hello\n\n" + data.replace(b"\n\n", b"\n: keep-alive\n\n\n: more\n\n"))


def _ids(data: bytes) -> Sent:
    parts = [part for part in data.split(b"\n\n") if part]
    named = [
        b"id: %d\nretry: 3000\nevent: message\n%s\n\n" % (number, part) for number, part in enumerate(parts)
    ]
    return Sent(b"".join(named), slice=64)


def _ids_and_comments(data: bytes) -> Sent:
    return Sent(b"id: 7\n" + data.replace(b"\n\n", b"\n\n: ping\n\n", 1))


def _cut(data: bytes) -> Sent:
    return Sent(data[: len(data) * 2 // 3], slice=100)


def _lost(data: bytes) -> Sent:
    return Sent(data[: len(data) // 2], slice=100, lost=True)


def _error(data: bytes) -> Sent:
    events = data.split(b"\n\n")
    told = b'data: {"error": {"message": "overloaded", "type": "server_error", "code": "529"}}'
    return Sent(b"\n\n".join([*events[: len(events) // 2], told, *events[len(events) // 2 :]]))


def _bad_json(data: bytes) -> Sent:
    return Sent(data.replace(b"}\n\n", b"\n\n", 1))


def _bad_utf8(data: bytes) -> Sent:
    return Sent(data.replace(b'"', b'"\xff', 9))


def _two_lines(data: bytes) -> Sent:
    return Sent(data.replace(b'{"', b'{\ndata:"', 1))


def _not_said(data: bytes) -> Sent:
    return Sent(data, headers={"content-type": "application/octet-stream"}, slice=50)


def _nothing(_: bytes) -> Sent:
    return Sent(b"")


SHAPES = [
    _crlf, _cr, _bom, _comments, _ids, _ids_and_comments, _cut, _lost, _error, _bad_json, _bad_utf8, _two_lines,
    _not_said, _nothing,
]  # fmt: skip


@corpus
@pytest.mark.parametrize(
    "one", [pytest.param(one, id=one.name) for one in _short(STREAMS) if len(one.data) < 8_000]
)
def test_the_same_events_in_every_shape_of_the_wire(one: Exchange) -> None:
    """All shapes in one run, one after the other: three runs a stream instead of three a shape."""

    def program(url: str) -> Any:
        return {shape.__name__: streamed(url, one.request()) for shape in SHAPES}

    trace = three_times(program, *(shape(one.data) for shape in SHAPES))
    assert len(trace.calls) == len(SHAPES)
