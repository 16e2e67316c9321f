"""``agentloom scan``: places and kinds, never secrets; exit code 1 when something was found."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from pathlib import Path

import pytest

from agentloom.cli.main import main
from tests.secrets.shapes import make


@pytest.fixture
def key() -> str:
    return make("aws", random.Random(12))


def test_a_file_with_a_secret(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(f"use {key} here")
    assert main(["scan", str(file)]) == 1
    out = capsys.readouterr().out
    assert "AWS key id  byte 4" in out
    assert "1 secret found  in 1 file" in out
    assert key not in out
    assert main(["scan", "--json", str(file)]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts == {
        "files": 1,
        "found": [{"file": str(file), "kind": "AWS key id", "offset": 4}],
        "unread": [],
        "exit": 1,
    }


def test_a_file_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("nothing to see")
    assert main(["scan", str(file)]) == 0
    assert "nothing found  in 1 file" in capsys.readouterr().out


def test_every_file_of_a_store(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    (store / "runs").mkdir(parents=True)
    (store / "left.tmp").write_text("\n".join(f"{number} {key}" for number in range(30)))
    for arguments in (["scan", "--store", str(store)], ["scan", "--all", "--store", str(store)]):
        assert main(arguments) == 1
        out = capsys.readouterr().out
        assert "30 secrets found" in out
        assert "and 10 more: -v shows all" in out
    assert main(["scan", "-v", "--store", str(store)]) == 1
    assert "more: -v" not in capsys.readouterr().out


def test_wrong_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(tmp_path / "none.loom")]) == 1
    assert "there is no file" in capsys.readouterr().err
    assert main(["scan", "last", "--all"]) == 2
    assert main(["scan", "--store", ":memory:"]) == 1
    assert "only a store in a folder" in capsys.readouterr().err


def test_several_files_and_folders(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "log.gz").write_bytes(gzip.compress(f"x {key}".encode()))
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", json.dumps({"text": key}))
    file = tmp_path / "notes.txt"
    file.write_text("nothing")
    assert main(["scan", "--json", str(folder), str(file), str(folder / "sub")]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["files"] == 3
    assert [one["file"].removeprefix(str(folder)) for one in facts["found"]] == [
        "/log.eval!samples/1.json",
        "/sub/log.gz",
    ]


def test_a_file_that_cannot_be_read_is_told(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 9999)[:-9])
    (tmp_path / "b.txt").write_text(f"x {key}")
    assert main(["scan", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "1 secret found  in 2 files" in said.out
    assert "a.gz could not be searched: " in said.err
    (tmp_path / "b.txt").unlink()
    assert main(["scan", "--json", str(tmp_path)]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["found"], len(facts["unread"]), facts["exit"]) == ([], 1, 1)
