"""``export`` and ``import``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli import samples

Call = Callable[..., Any]
MADE = samples.refund(tags={"ticket": "812"})


@pytest.fixture
def stored(cli: Call, tmp_path: Path) -> str:
    (tmp_path / "in.loom").write_bytes(MADE.data)
    result = cli("import", "in.loom")
    assert (result.code, result.out) == (0, f"{MADE.run}  from in.loom\n")
    return MADE.run


def test_export_is_the_same_bytes(cli: Call, stored: str, tmp_path: Path) -> None:
    for ref in ("last", stored, stored[-5:], "812", "ticket=812"):
        result = cli("export", ref, "-o", "out.loom", "--force")
        assert result.code == 0, result.err
        assert (tmp_path / "out.loom").read_bytes() == MADE.data
        assert f"head {MADE.journal.head}" in result.out


def test_the_default_name_is_the_run(cli: Call, stored: str, tmp_path: Path) -> None:
    assert cli("export", "last", "--json").data["file"] == f"{stored}.loom"
    assert (tmp_path / f"{stored}.loom").exists()


def test_export_replaces_no_file_unasked(cli: Call, stored: str, tmp_path: Path) -> None:
    (tmp_path / "out.loom").write_text("mine")
    result = cli("export", "last", "-o", "out.loom")
    assert (result.code, result.err) == (
        1,
        "error: out.loom exists\nnext: choose another name with -o, or --force\n",
    )
    assert (tmp_path / "out.loom").read_text() == "mine"


def test_export_names_the_suffixes(cli: Call, stored: str) -> None:
    assert cli("export", "last", "-o", "out.json").code == 2


def test_export_to_stdout_is_the_trace(process: Call, stored: str) -> None:
    assert process("export", "last", "-o", "-").out.encode() == MADE.data


def test_export_says_when_the_folder_cannot_be_written(cli: Call, stored: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = cli("export", "last", "-o", "file/out.loom")
    assert result.code == 1
    assert "file/out.loom" in result.err


def test_import_twice_changes_nothing(cli: Call, stored: str) -> None:
    assert cli("import", "in.loom", "--json").data == {"imported": [{"file": "in.loom", "run": stored}]}
    assert len(cli("ls", "--json").data["runs"]) == 1


def test_import_reads_compressed_files(cli: Call, stored: str) -> None:
    cli("export", "last", "-o", "c.loom.zst")
    assert cli("--store", "other", "import", "c.loom.zst").code == 0
    assert cli("--store", "other", "ls", "--json").data["runs"][0]["run"] == stored


@pytest.mark.parametrize(
    ("data", "code"),
    [(MADE.data.replace(b"Refunded", b"Refundex"), 5), (b"", 5), (b"\x00\x01\x02", 5), (b"hello\n", 5)],
)
def test_a_damaged_file_is_refused_and_nothing_kept(
    cli: Call, tmp_path: Path, data: bytes, code: int
) -> None:
    (tmp_path / "bad.loom").write_bytes(data)
    result = cli("import", "bad.loom")
    assert result.code == code
    assert result.err.startswith("error: ")
    assert cli("ls", "--json").data["runs"] == []


def test_another_trace_of_the_same_id_is_refused(cli: Call, stored: str, tmp_path: Path) -> None:
    other = samples.refund(end=False)
    (tmp_path / "other.loom").write_bytes(other.end("something else"))
    result = cli("import", "other.loom")
    assert result.code == 1
    assert stored in result.err


def test_a_file_that_is_not_there(cli: Call) -> None:
    result = cli("import", "nowhere.loom")
    assert result.code == 1
    assert "nowhere.loom" in result.err
