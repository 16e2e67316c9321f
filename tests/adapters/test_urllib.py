"""`urllib.request` through its seam: openers, posted files, redirects."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from typing import Any

import pytest

from agentloom import agent
from agentloom.adapters import sdks, urllib_seam
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Raw


def opens(url: str) -> Any:
    found: list[Any] = []
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(url + "/moved") as answer:
        found.append([answer.geturl().rpartition("/")[2], answer.read().decode()])
    request = urllib.request.Request(url + "/up", data=io.BytesIO(b"file"), headers={"Content-Length": "4"})
    with opener.open(request) as answer:
        found.append([answer.status, answer.read(3).decode(), answer.read().decode()])
    try:
        opener.open("ftp://127.0.0.1:9/x")
    except OSError as error:
        found.append(type(error).__name__)
    return found


def test_redirects_files_and_handlers_of_ones_own() -> None:
    sdks.watch()
    moved = Raw(b"", 302, {"location": "/here", "content-type": "text/plain"})
    with FakeProvider([moved, "arrived", "uploaded"], others=True) as fake:
        url = fake.url
        trace = agent(opens).run(url, store=MemoryStore(), guard="virtual")
    assert trace.output[0][0] == "here"
    assert trace.output[1][0] == 200
    assert [call.kind for call in trace.calls] == ["http"] * 3
    assert trace.calls[2].request["text"] == "file"


def asks(url: str) -> Any:
    found: list[Any] = []
    for number in range(3):
        asked = urllib.request.Request(url + "/x", b'{"q":1}', {"content-type": "application/json"})
        with urllib.request.urlopen(asked) as answer:
            found.append(answer.read() if number else [answer.read(5), answer.read1(3), answer.read()])
    return found


def test_a_short_answer_is_the_outcome_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sdks.watch()
    with FakeProvider(["a", "b", "c"] * 2, others=True) as fake:
        trace = agent(asks).run(fake.url, store=MemoryStore())
        with monkeypatch.context() as patch:
            patch.setattr(urllib_seam, "_SHORT", 0)  # as earlier versions recorded it
            earlier = agent(asks).run(fake.url, store=MemoryStore())
    for one, kinds in ((trace, ["request", "outcome"]), (earlier, ["request", "chunks", "outcome"])):
        assert [entry["kind"] for entry in one.journal.entries if "call" in entry] == kinds * 3
        assert one.replay().verdict == "identical"


EVENTS = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\ndata: [DONE]\n\n'


def streams(url: str) -> Any:
    asked = urllib.request.Request(
        url + "/v1/chat/completions",
        b'{"model":"m","stream":true,"messages":[]}',
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(asked) as answer:
        return [answer.headers["content-length"], answer.read().decode()]


def test_events_that_tell_their_length_are_events() -> None:
    """A proxy may send a short stream at once: its token counts are counted."""
    sdks.watch()
    with FakeProvider([Raw(EVENTS, 200, {"content-type": "text/event-stream"})], others=True) as fake:
        trace = agent(streams).run(fake.url, store=MemoryStore())
    assert trace.output == [str(len(EVENTS)), EVENTS.decode()]
    assert [entry["kind"] for entry in trace.journal.entries if "call" in entry][1] == "chunks"
    assert trace.calls[0].usage == {"input": 5, "output": 2}
    assert trace.replay().verdict == "identical"
