"""Case 1: the same upload under another random multipart boundary is the same request; one flipped byte is another, and
the report names the part."""

from __future__ import annotations

import io
from typing import Any

import httpx2
import pytest

from agentloom import agent
from agentloom.adapters import sdks
from agentloom.replay.report import Report
from agentloom.store import MemoryStore
from tests.cases.three import client
from tests.cases.wire import Sent, Wire, seen

ANSWER = Sent(
    b'{"id": "file-1", "object": "file", "bytes": 3, "created_at": 1, "filename": "a.bin", "purpose": "assistants"}',
    headers={"content-type": "application/json"},
)
DATA = bytes(range(256)) * 400


def paths(report: Report) -> list[str]:
    """Where the first diverging request differs."""
    assert report.finding is not None
    assert report.finding.comparison is not None
    return [item.path for item in report.finding.comparison.items]


def upload(url: str, data: bytes, name: str = "a.bin", purpose: Any = "assistants") -> Any:
    with client(url) as made:
        return seen(made.files.create(file=(name, io.BytesIO(data)), purpose=purpose))


def changed(**edit: Any) -> Report:
    """Record an upload and replay another; the report."""
    sdks.watch()
    given: dict[str, Any] = {"data": DATA}

    @agent
    def program(url: str) -> Any:
        return upload(url, **given)

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
        assert len(wire.bodies[0].split(b"\r\n")[0]) > 20
    given.update(edit)
    return trace.replay(check=False)


def test_another_boundary_is_the_same_request() -> None:
    assert changed().verdict == "identical"


def test_two_uploads_of_one_run_have_one_key_and_two_outcomes() -> None:
    sdks.watch()

    @agent
    def program(url: str) -> Any:
        return [upload(url, DATA), upload(url, DATA)]

    other = Sent(ANSWER.data.replace(b"file-1", b"file-2"), headers=ANSWER.headers)
    with Wire(ANSWER, other) as wire:
        trace = program.run(wire.url, store=MemoryStore())
        assert wire.bodies[0] != wire.bodies[1]
    first, second = trace.calls
    assert first.request == second.request
    assert first.result["json"]["id"] == "file-1"
    assert second.result["json"]["id"] == "file-2"
    assert trace.replay(check=False).verdict == "identical"


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        ({"data": DATA[:5000] + b"\x00" + DATA[5001:]}, "form.file.bytes"),
        ({"name": "b.bin"}, "form.file.headers.content-disposition"),
        ({"purpose": "batch"}, "form.purpose.text"),
    ],
    ids=["a byte", "the name", "a field"],
)
def test_what_differs_is_named_by_its_part(edit: dict[str, Any], path: str) -> None:
    report = changed(**edit)
    assert report.verdict == "diverged"
    assert paths(report) == [path]
    assert path in str(report)
    assert len(str(report)) < 1200


def test_httpx_itself_and_text_parts() -> None:
    sdks.watch()
    given = {"text": "one\ntwo"}

    @agent
    def program(url: str) -> Any:
        files = [
            ("notes", ("n.txt", given["text"].encode(), "text/plain")),
            ("notes", ("m.txt", b"x", "text/plain")),
        ]
        return httpx2.post(url + "/things", data={"title": "t"}, files=files).json()

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
    form: Any = trace.calls[0].request["form"]
    assert form["title"]["text"] == "t"
    assert [part["text"] for part in form["notes"]] == ["one\ntwo", "x"]
    assert trace.replay(check=False).verdict == "identical"
    given["text"] = "one\ntwO"
    assert paths(trace.replay(check=False)) == ["form.notes[0].text"]
