"""Payloads in memory: what is gone, what does not resolve, and what would never end."""

from __future__ import annotations

import pytest

from agentloom.errors import FormatError, LoomError
from agentloom.format.canonical import Tree
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


def test_a_chain_of_references_may_be_long_where_the_value_is_shallow() -> None:
    made = Maker("long").start()
    blob = made.put([1, {"a": "b"}])
    for _ in range(3000):
        blob = made.put({"$part": [{"$ref": blob}, 1]})
        blob = made.put([blob[:1], {"$ref": blob}])
    journal = Journal.parse(made.entry("note", val=blob).end().data)
    assert journal.tree(blob)[1] == {"a": "b"}  # type: ignore[index]


def test_a_value_of_the_greatest_depth_in_blobs_of_their_own_is_read() -> None:
    made = Maker("deepest").start()
    tree: Tree = "x" * 2000
    for level in range(200):
        tree = [tree, "y" * 2000 + str(level)] if level % 2 else {"a": tree, "b": "z" * 2000 + str(level)}
    blob = made.put(tree)
    assert Journal.parse(made.entry("note", val=blob).end().data).tree(blob) == tree


@pytest.mark.parametrize("tag", ["$text", "$bytes", "list"])
def test_one_part_cannot_be_joined_without_end(tag: str) -> None:
    made = Maker("part").start()
    part = made.blobs.put_bytes(b"x" * 1024 * 1024)
    blob = made.put({tag: [{"$ref": part}] * 2_000})
    with pytest.raises(FormatError) as caught:
        Journal.parse(made.entry("note", val=blob).end().data).tree(blob)
    assert caught.value.code == "limit.expanded"


def test_quotation_marks_cannot_double_without_end() -> None:
    made = Maker("quotes").start()
    blob = made.put(['"\\"' * 100])
    for _ in range(60):
        blob = made.put({"$json": [{"$ref": blob}, "compact"]})
    with pytest.raises(FormatError) as caught:
        Journal.parse(made.entry("note", val=blob).end().data).tree(blob)
    assert caught.value.code == "limit.expanded"


def test_lists_that_are_small_as_text_cannot_unfold_without_end() -> None:
    made = Maker("empty").start()
    blob = made.put([[]] * 50)
    for _ in range(4):
        blob = made.put([{"$ref": blob}] * 50)
    with pytest.raises(FormatError) as caught:
        Journal.parse(made.entry("note", val=blob).end().data).tree(blob)
    assert caught.value.code == "limit.expanded"
