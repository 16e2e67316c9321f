"""Every vector gives its verdict in the product and in the stand-alone checker; the index covers every code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import FormatError, IntegrityError, UnsupportedVersion
from agentloom.format.journal import Journal, check
from spec import make_vectors, verify

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "spec" / "vectors" / "v1"
ROWS: list[dict[str, Any]] = json.loads((VECTORS / "vectors.json").read_text())["vectors"]
SPECIFICATION = (ROOT / "docs" / "trace-format.md").read_text()
# Codes that no small file can show, each with the test that does.
ELSEWHERE = {"line.long": "tests/format/test_journal.py"}
# Opening a trace does not look at these: a check does, and reading the payload does.
CHECKED_LATER = ["blob.place", "blob.order", "erase.present", "blob.list", "json.depth", "json.duplicate"]
CHECKED_LATER += ["json.number", "json.syntax"]
IN_ENTRIES = [
    row["file"] for row in ROWS if (row["code"] or "").startswith("json.") and "blob-" not in row["file"]
]


def data_of(row: dict[str, Any]) -> bytes:
    return (VECTORS / str(row["file"])).read_bytes()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_the_product_gives_the_verdict(row: dict[str, Any]) -> None:
    verdict = check(data_of(row), head=row.get("head"))
    found = {"consistent": verdict.consistent, "unaltered": verdict.unaltered, "complete": verdict.complete}
    assert found | {"code": verdict.code, "line": verdict.line} == {
        "consistent": row["consistent"],
        "unaltered": row.get("unaltered"),
        "complete": row["complete"],
        "code": row["code"],
        "line": row["line"],
    }, verdict.message
    if row["consistent"]:
        counts = {name: len(getattr(verdict, name)) for name in ("missing", "unreferenced", "erased")}
        assert counts == {name: row.get(name, 0) for name in counts}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_the_checker_gives_the_verdict(row: dict[str, Any]) -> None:
    result = verify.check(data_of(row), row.get("head"))
    found = {name: result[name] for name in ("consistent", "unaltered", "complete")}
    assert found == {name: row.get(name) for name in found}, result["message"]
    assert (result["place"] and result["place"][0]) == row["line"], result["message"]
    if row["consistent"]:
        counts = {name: len(result[name]) for name in ("missing", "unreferenced", "erased")}
        assert counts == {name: row.get(name, 0) for name in counts}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_parsing_raises_the_same_code_or_reads(row: dict[str, Any]) -> None:
    data = data_of(row)
    if row["consistent"]:
        journal = Journal.parse(data)
        assert journal.entries[0]["kind"] == "start"
        assert journal.closed == (b'"kind":"end"' in data[: journal.size])
        return
    if row["code"] in CHECKED_LATER and row["file"] not in IN_ENTRIES:
        assert Journal.parse(data).entries
        return
    with pytest.raises((FormatError, IntegrityError)) as caught:
        Journal.parse(data)
    assert (caught.value.fields["code"], caught.value.fields["line"]) == (row["code"], row["line"])
    assert isinstance(caught.value, UnsupportedVersion) == row["code"].startswith(("version.", "segment."))


def test_every_code_of_the_specification_has_a_vector() -> None:
    table = SPECIFICATION.partition("## 14. Errors")[2].partition("## 15.")[0]
    rows = "\n".join(line for line in table.splitlines() if line.startswith("| `"))
    codes = set(
        re.findall(r"`([a-z]+\.[a-z0-9]+)`", "\n".join(line.split("|")[1] for line in rows.splitlines()))
    )
    shown = {row["code"] for row in ROWS} - {None}
    assert codes - shown == set(ELSEWHERE)
    assert shown - codes == set()


def test_vectors_and_worked_example_are_what_the_script_makes() -> None:
    changed = [path.name for path, data in make_vectors.files().items() if path.read_bytes() != data]
    assert changed == []


def test_vectors_are_made_the_same_twice() -> None:
    assert make_vectors.files() == make_vectors.files()


def test_every_file_is_in_the_index() -> None:
    files = {str(path.relative_to(VECTORS)) for path in VECTORS.rglob("*.loom")}
    assert files == {row["file"] for row in ROWS}
