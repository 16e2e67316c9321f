"""Payloads in memory: what is gone, what does not resolve, and what would never end."""

from __future__ import annotations

import pytest

from agentloom.errors import FormatError, LoomError
from agentloom.format.journal import Journal, check
from spec.vector_maker import Maker
from spec.vector_traces import erase


def test_an_erased_payload_is_told_from_a_lost_one() -> None:
    journal = Journal.parse(erase())
    assert journal.nonce is None
    gone = journal.entries[4]["val"]
    assert not journal.has(gone)
    with pytest.raises(LoomError, match=r"was erased \(entry 8\)"):
        journal.tree(gone)
    assert journal.tree(journal.entries[0]["input"]) == {"args": ["refund order 812"], "kwargs": {}}


def test_a_reference_in_another_spelling_is_one() -> None:
    made = Maker("spelling").start()
    text = made.put("x" * 2000)
    covered = b'{ "a" : {"\\u0024ref": "%b"} }' % text.encode()
    blob = made.blobs._write_json(covered, b"")
    data = made.entry("note", val=blob).end().data
    assert check(data).ok
    assert check(data).unreferenced == []
    assert Journal.parse(data).tree(blob) == {"a": "x" * 2000}


def test_a_small_file_cannot_unfold_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Maker("bomb").start()
    blob = made.put("x" * 2000)
    for _ in range(30):
        blob = made.put([{"$ref": blob}] * 10)
    data = made.entry("note", val=blob).end().data
    assert len(data) < 50_000
    with pytest.raises(FormatError) as caught:
        Journal.parse(data).tree(blob)
    assert caught.value.code == "limit.expanded"


def test_references_nest_only_so_deep() -> None:
    made = Maker("deep").start()
    blob = made.put(["x" * 100])
    for _ in range(2000):
        blob = made.put([{"$ref": blob}])
    journal = Journal.parse(made.entry("note", val=blob).end().data)
    with pytest.raises(FormatError) as caught:
        journal.tree(blob)
    assert caught.value.code == "json.depth"


def test_an_extended_list_must_be_one() -> None:
    made = Maker("lists").start()
    short, text = made.put([1]), made.put({"a": 1})
    ids = [
        made.put({"$list": [short, 2, []]}),
        made.put({"$list": [text, 1, []]}),
        made.put({"m": {"$list": [short, 1, []]}}),
    ]
    journal = Journal.parse(made.entry("note", reads=[*ids]).end().data)
    for blob in ids:
        with pytest.raises(FormatError) as caught:
            journal.tree(blob)
        assert caught.value.code == "blob.list"
