"""Format golden files: written once by version 1.0, read for ever, never made anew."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from agentloom.format.journal import Journal, check
from agentloom.format.values import Types, decode, encode

GOLDEN = Path(__file__).parents[1] / "golden" / "v1"
DIGESTS = {
    "format-values.loom": "9bae68bb1cd67c91b3dad4c11cd994d5b0f5ff99822412c02561ed54fb7d4f38",
    "format-history.loom": "af36ab8e61d9b695c50c6fc556b48c2f98d43df70ea6c6667ad8ba56529364fc",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_a_golden_file_was_not_made_anew(name: str) -> None:
    assert hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() == DIGESTS[name]


@pytest.mark.parametrize("name", DIGESTS)
def test_a_golden_file_reads_as_ever(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    expected = json.loads((GOLDEN / name).with_suffix(".json").read_text())
    verdict = check(data, head=expected["head"])
    assert verdict.ok, verdict.message
    journal = Journal.parse(data)
    assert [entry["kind"] for entry in journal.entries] == expected["kinds"]
    payloads = {
        f"{entry['seq']}.{name}": journal.tree(entry[name])
        for entry in journal.entries
        for name in ("input", "req", "val", "err")
        if name in entry
    }
    assert payloads == expected["payloads"]


def test_golden_values_decode_and_encode_to_the_same_tree() -> None:
    journal = Journal.parse((GOLDEN / "format-values.loom").read_bytes())
    tree = journal.tree(journal.entries[1]["req"])
    assert isinstance(tree, dict)
    del tree["obj"]  # a type of a program that is not here
    types = Types()
    assert encode(decode(tree, types), types) == tree
