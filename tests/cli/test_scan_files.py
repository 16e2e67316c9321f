"""Files are searched in bounded pieces: traces by their lines, any other file as it is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import zstandard

from agentloom import agent, tool
from agentloom.cli.scan_containers import files_of
from agentloom.cli.scan_files import scan_path
from agentloom.runtime.redaction import Redactor
from agentloom.store import LocalStore, write_file
from tests.secrets.agent_places import places
from tests.secrets.shapes import make


@tool
def use(value: Any) -> Any:
    return value


@agent(guard="off")
def leaks(value: Any) -> str:
    use(value)
    return "done"


@pytest.fixture
def key() -> str:
    return make("openai", random.Random(11))


def _old_trace(value: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace as it was written before secrets were kept out."""
    with monkeypatch.context() as patch:
        patch.setattr(Redactor, "gate", lambda self, data: None)
        trace = leaks.run(value, store=LocalStore(folder))
    return folder / "runs" / f"{trace.run_id}.loom"


@pytest.mark.parametrize(
    "name", ["text", "key", "json", "escaped", "url", "base64", "inside", "hex", "bytes", "gzip", "wide"]
)
def test_a_secret_in_an_old_trace_is_found_by_its_place(
    name: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _old_trace(places(key)[name], tmp_path, monkeypatch)
    found = [one for one in scan_path(str(path)) if one.kind == "OpenAI-style key"]
    assert {one.field for one in found} >= {"start.input", "request.req", "outcome.val"}
    assert any(one.call == "1 root/leaks#1" for one in found)
    assert key not in str(found)


def test_a_new_trace_holds_nothing(key: str, tmp_path: Path) -> None:
    trace = leaks.run(places(key), store=LocalStore(tmp_path))
    kinds = {one.kind for path in files_of(str(tmp_path)) for one in scan_path(path)}
    assert "OpenAI-style key" not in kinds
    assert trace.run_id


def test_compressed_traces_and_long_texts(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "x" * ((1 << 20) - 20) + " " + key + "y " * 600_000
    path = _old_trace(text, tmp_path, monkeypatch)
    packed = tmp_path / "old.loom.zst"
    write_file(packed, path.read_bytes())
    for file in (path, packed):
        found = [one for one in scan_path(str(file)) if one.kind == "OpenAI-style key"]
        assert [one.path for one in found if one.path == "across parts"]


def test_any_other_file_is_searched_in_pieces(key: str, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_bytes(
        b"a" * 1000 + b" " + key.encode() + b" " + b"b" * ((1 << 20) - 1020) + b" " + key.encode() + b" c"
    )
    offsets = [one.offset for one in scan_path(str(file))]
    assert offsets == [1001, file.read_bytes().rindex(key.encode())]
    (tmp_path / "log.zst").write_bytes(zstandard.compress(file.read_bytes()))
    assert [one.offset for one in scan_path(str(tmp_path / "log.zst"))] == offsets
    (tmp_path / "empty").write_bytes(b"")
    assert list(scan_path(str(tmp_path / "empty"))) == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"blob":"x","form":"bytes","data":5,"KEY":1}',
        b'{"blob":"x","form":"json","data":{"$list":"KEY"}}',
        b'{"blob":"x","form":"json","data":{"$obj":["KEY"]}}',
        b'{"blob":"x","form":"json","data":{"$map":["KEY"]}}',
        b'{"blob":"x","form":"json","data":{"$bytes":"KEY"}}',
        b'{"blob":"x","form":"json","data":{"$error":"KEY"}}',
        b'{"blob":"x","form":"json","data":{"$text":["KEY"]}}',
        b'{"blob":"x","form":"json","data":' + b"[" * 900 + b'"KEY"' + b"]" * 900 + b"}",
        b'{"blob":["KEY"]}',
        b'{"blob":"KEY',
        b'["KEY"]',
        b'"KEY"',
        b'{"seq":1,"kind":"note","KEY":1}',
        b'{"seq":1,"kind":"request","call":{"x":"KEY"},"name":["KEY"]}',
        b'{"seq":1,"kind":"chunks","call":"c","val":{"x":"KEY"}}',
        b"KEY",
    ],
)
def test_lines_that_are_no_lines_of_a_trace_are_searched_too(line: bytes, key: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.loom"
    file.write_bytes(b'{"seq":0,"kind":"start"}\n' + line.replace(b"KEY", key.encode()) + b"\n")
    found = list(scan_path(str(file)))
    assert [one.kind for one in found][:1] == ["OpenAI-style key"]
    assert key not in str(found)
