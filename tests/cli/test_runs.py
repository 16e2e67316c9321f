"""Which trace a word means, and short names."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.cli.options import Settings
from agentloom.cli.runs import find, looks_like_a_file, short
from agentloom.errors import RunNotFound
from tests.cli import samples


@pytest.mark.parametrize(
    ("ref", "file"),
    [("a.loom", True), ("a.loom.zst", True), ("./x", True), ("last", False), ("7f3a", False), ("812", False)],
)
def test_what_is_meant_as_a_file(ref: str, *, file: bool) -> None:
    assert looks_like_a_file(ref) is file


def test_a_file_without_a_suffix_is_found_by_its_existence(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(samples.refund().data)
    found = find(Settings(), "trace")
    assert (found.run, found.path, found.name) == (None, "trace", "trace")


def test_a_missing_file_is_not_looked_up_as_a_run() -> None:
    with pytest.raises(RunNotFound, match=r"nothing\.loom"):
        find(Settings(), "nothing.loom")


def test_short_names_are_ends_that_tell_apart() -> None:
    assert short("0ABCDEF") == "CDEF"
    assert short("0ABCDEF", ["0ABCDEF", "9XYCDEF"]) == "BCDEF"
    assert short("AB") == "AB"
