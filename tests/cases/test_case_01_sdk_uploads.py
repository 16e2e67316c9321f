"""Case 1 through the SDKs' own uploads: another boundary is the same request, one flipped byte is another, sync and
async, with OpenAI's files and audio and Anthropic's files."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from agentloom import agent
from agentloom.adapters import sdks
from agentloom.store import MemoryStore
from tests.cases.test_case_01_uploads import paths
from tests.cases.three import aclaude, aclient, claude, client
from tests.cases.wire import Sent, Wire, seen

DATA = bytes(range(256)) * 40
JSON = {"content-type": "application/json"}
FILE = {"id": "f1", "object": "file", "bytes": 3, "created_at": 1, "filename": "a.bin", "purpose": "batch"}
CLAUDES = {
    "id": "f1", "type": "file", "filename": "a.bin", "mime_type": "application/octet-stream", "size_bytes": 3,
    "created_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
OPENAI = Sent(json.dumps(FILE).encode(), headers=JSON)
CLAUDE = Sent(json.dumps(CLAUDES).encode(), headers=JSON)
HEARD = Sent(b'{"text": "hello"}', headers=JSON)


def files(url: str, data: bytes) -> Any:
    with client(url) as made:
        return seen(made.files.create(file=("a.bin", io.BytesIO(data)), purpose="batch"))


async def files_async(url: str, data: bytes) -> Any:
    async with aclient(url) as made:
        return seen(await made.files.create(file=("a.bin", data), purpose="batch"))


def audio(url: str, data: bytes) -> Any:
    with client(url) as made:
        return seen(made.audio.transcriptions.create(model="whisper-1", file=("a.wav", data, "audio/wav")))


def claude_files(url: str, data: bytes) -> Any:
    with claude(url) as made:
        return seen(made.beta.files.upload(file=("a.bin", io.BytesIO(data), "application/octet-stream")))


async def claude_files_async(url: str, data: bytes) -> Any:
    async with aclaude(url) as made:
        return seen(await made.beta.files.upload(file=("a.bin", data, "application/octet-stream")))


UPLOADS = [
    (files, OPENAI), (files_async, OPENAI), (audio, HEARD), (claude_files, CLAUDE), (claude_files_async, CLAUDE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("upload", "answer"), UPLOADS, ids=[getattr(one[0], "__name__", "") for one in UPLOADS]
)
def test_a_boundary_is_no_difference_and_a_byte_is_one(upload: Any, answer: Sent) -> None:
    sdks.watch()
    given = {"data": DATA}

    if upload.__name__.endswith("async"):

        async def twice_async(url: str) -> Any:
            return [await upload(url, given["data"]), await upload(url, given["data"])]

        program = agent(name="uploads")(twice_async)
    else:

        def twice(url: str) -> Any:
            return [upload(url, given["data"]), upload(url, given["data"])]

        program = agent(name="uploads")(twice)
    with Wire(answer) as wire:
        trace = program.run(wire.url, store=MemoryStore())
        first, second = (body.split(b"\r\n")[0] for body in wire.bodies)
        assert first != second, "the SDK draws a boundary for each request"
    assert trace.calls[0].request == trace.calls[1].request
    assert trace.replay(check=False).verdict == "identical"
    given["data"] = DATA[:5000] + bytes([DATA[5000] ^ 1]) + DATA[5001:]
    report = trace.replay(check=False)
    assert report.verdict == "diverged"
    assert paths(report) == ["form.file.bytes"]
    assert "form.file.bytes" in str(report)
