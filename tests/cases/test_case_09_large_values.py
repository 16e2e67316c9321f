"""Case 9: a 30 MB image returned twice is stored once, comes back equal, and the record lines stay small; with the
payload deleted, an error names the call and the id."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace, agent, tool
from agentloom.errors import PayloadMissing
from agentloom.store import LocalStore

SIZE = 30_000_000
_ran: list[int] = []


def _image() -> bytes:
    return random.Random(9).randbytes(SIZE)


@tool(effect="read")
def screenshot() -> bytes:
    _ran.append(1)
    return _image()


@agent
def looks() -> list[Any]:
    return [
        [len(image), hashlib.sha256(image).hexdigest(), type(image).__name__]
        for image in (screenshot(), screenshot())
    ]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return looks.run(store=LocalStore(tmp_path_factory.mktemp("store")))


def test_it_is_stored_once_and_comes_back_equal(trace: Trace, tmp_path: Path) -> None:
    digest = hashlib.sha256(_image()).hexdigest()
    assert trace.output == [[SIZE, digest, "bytes"]] * 2
    path = tmp_path / "run.loom"
    trace.save(path)
    data = path.read_bytes()
    assert len(data) < SIZE * 4 / 3 + 200_000
    lines = data.splitlines()
    assert max(map(len, lines)) < 1_500_000
    assert max(len(line) for line in lines if line.startswith(b'{"seq"')) < 2_000
    assert len(set(lines)) == len(lines)
    _ran.clear()
    assert trace.replay().verdict == "identical"
    assert _ran == []
    first, second = trace.calls
    assert first.result == second.result
    assert first.result is not second.result


def test_without_the_payload_the_error_names_the_call_and_the_id(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.loom"
    trace.save(path)
    lines = path.read_bytes().splitlines(keepends=True)
    biggest = max(range(len(lines)), key=lambda n: len(lines[n]))
    gone = json.loads(lines[biggest][:200].split(b',"salt"')[0] + b"}")["blob"]
    path.write_bytes(b"".join(line for n, line in enumerate(lines) if n != biggest))
    broken = Trace.load(path)
    assert not broken.verify().complete or broken.verify().missing
    for work in (lambda: broken.calls[0].result, lambda: broken.replay(check=False, agent=looks)):
        with pytest.raises(PayloadMissing) as caught:
            work()
        told = str(caught.value)
        assert gone[:12] in told
        assert "screenshot" in told or "root/looks" in told or "call 1" in told


PICTURE = "data:image/png;base64," + "".join(random.Random(10).choices("abcdefgh", k=2_500_000))


@tool(effect="read")
def looked_at(picture: str, note: str) -> dict[str, Any]:
    return {"picture": picture, "note": note.upper()}


@agent
def looks_at_one_picture(turns: int) -> list[int]:
    seen: list[Any] = []
    for turn in range(turns):
        found = looked_at(PICTURE, f"turn {turn}")
        seen.append({"again": [found, {"deep": [found["picture"]]}]})
    return [len(str(one)) for one in seen]


def test_a_picture_that_goes_in_and_comes_out_of_every_call_is_stored_once(tmp_path: Path) -> None:
    trace = looks_at_one_picture.run(6, store=LocalStore(tmp_path))
    (file,) = tmp_path.rglob("*.loom*")
    assert file.stat().st_size < len(PICTURE) * 1.5
    assert trace.calls[5].request["args"]["picture"] == trace.calls[0].result["picture"] == PICTURE
    assert trace.replay().verdict == "identical"
