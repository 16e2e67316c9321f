"""Payloads come back from their lines; each content is stored once; histories grow by what was added."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import PayloadMissing, ValueRefused
from agentloom.format.blobs import BlobWriter
from agentloom.format.journal import Journal
from agentloom.format.limits import PART_BYTES
from spec.vector_maker import Maker
from tests.format.strategies import FEW, STEADY, same, trees
from tests.format.traces import hold, journal, maker


@STEADY
@given(st.lists(trees, min_size=1, max_size=4))
def test_payloads_come_back(payloads: list[Any]) -> None:
    made = maker()
    ids = [hold(made, tree) for tree in payloads]
    read = journal(made)
    for blob, tree in zip(ids, payloads, strict=True):
        assert same(read.tree(blob), tree)


@FEW
@given(st.lists(st.lists(trees, max_size=8), min_size=1, max_size=6), st.booleans())
def test_lists_of_a_series_come_back_whatever_they_share(histories: list[Any], grow: bool) -> None:
    made = maker()
    sent: list[tuple[str, Any]] = []
    so_far: list[Any] = ["s" * 300]
    for history in histories:
        so_far = so_far + history if grow else ["s" * 300, *history]
        request = {"model": "m", "messages": list(so_far), "tools": [{"name": "x" * 300}], "n": len(sent)}
        sent.append((hold(made, request, "model:m"), request))
    read = journal(made)
    for blob, request in [*sent, *reversed(sent)]:
        assert same(read.tree(blob), request)


def test_equal_content_has_one_id() -> None:
    made = maker()
    first, again = hold(made, {"a": [1, 2, "x" * 2000]}), hold(made, {"a": [1, 2, "x" * 2000]})
    assert first == again
    assert hold(made, {"a": [1.0, 2, "x" * 2000]}) != first
    request = {"messages": ["y" * 300]}
    assert hold(made, request, "s") == hold(made, request, "s")
    assert made.data.count(b"x" * 2000) == 1


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 5])
def test_bytes_of_any_size(size: int) -> None:
    made = maker()
    payload = random.Random(size).randbytes(size)
    tree = {"picture": {"$bytes": base64.b64encode(payload).decode()}}
    blob = hold(made, tree)
    before = len(made.data)
    assert hold(made, [tree, 1]) != blob
    assert len(made.data) - before < 2000 + size % 1024
    assert same(journal(made).tree(blob), tree)
    assert max(map(len, made.data.split(b"\n"))) < 1.4 * PART_BYTES


@pytest.mark.parametrize("text", ["x" * 3_000_000, "snow\u2603" * 500_000])
def test_text_of_any_size(text: str) -> None:
    made = maker()
    whole, inside = hold(made, text), hold(made, {"a": [text]})
    read = journal(made)
    assert read.tree(whole) == text
    assert read.tree(inside) == {"a": [text]}
    assert max(map(len, made.data.split(b"\n"))) < 1.4 * PART_BYTES


def test_a_list_too_long_for_a_line() -> None:
    made = maker()
    numbers: Any = list(range(300_000))
    blob, inside = hold(made, numbers), hold(made, {"messages": numbers}, "s")
    longer = hold(made, {"messages": [*numbers, "and"]}, "s")
    read = journal(made)
    assert read.tree(blob) == numbers
    assert read.tree(inside) == {"messages": numbers}
    assert read.tree(longer) == {"messages": [*numbers, "and"]}
    assert max(map(len, made.data.split(b"\n"))) < 2 * PART_BYTES


def test_a_mapping_too_long_for_a_line_is_refused_and_leaves_nothing() -> None:
    made = maker()
    with pytest.raises(ValueRefused, match="one mapping"):
        made.put({"text": "x" * 2000, **{str(n): "y" * 90 for n in range(180_000)}})
    assert made.blobs.pending == b""
    hold(made, {"text": "x" * 2000})
    journal(made)


def test_going_on_in_another_process_knows_what_is_there() -> None:
    made = maker()
    big: Any = {"text": "x" * 2000, "list": list(range(600)), "n": [{"a": 1}]}
    ids = [
        hold(made, tree)
        for tree in (big, "y" * 1500, [1, 2], {"$bytes": base64.b64encode(b"z" * 5000).decode()})
    ]
    hold(made, {"messages": ["m" * 400, "n"]}, "s")
    hold(made, {"messages": ["m" * 400, "n", "o"]}, "s")
    again = BlobWriter.resume(Journal.parse(made.data), random.Random(9).randbytes)
    known: list[Any] = [big, "y" * 1500, [1, 2]]
    assert [again.put(tree) for tree in known] == ids[:3]
    assert again.pending == b""
    again.put({"messages": [big, "new"]})
    assert len(again.pending) < 400


def test_salts_and_ids() -> None:
    made, other = maker(), Maker("other").start()
    hold(made, "the same")
    hold(other, "the same")
    ids = [
        next(json.loads(line) for line in one.data.splitlines() if b'"the same"' in line)
        for one in (made, other)
    ]
    assert ids[0]["salt"] != ids[1]["salt"]
    assert ids[0]["blob"] != ids[1]["blob"]


def test_lines_are_sorted_by_id() -> None:
    writer = BlobWriter(random.Random(1).randbytes)
    for n in range(20):
        writer.put(n)
    lines = writer.pending.splitlines()
    assert lines == sorted(lines)
    assert writer.take() == b"".join(line + b"\n" for line in lines)
    assert writer.take() == b""


def test_a_payload_that_is_gone_is_named() -> None:
    made = maker()
    blob = hold(made, {"big": "x" * 2000})
    lines = [line for line in made.end().data.split(b"\n") if b"xxx" not in line]
    read = Journal.parse(b"\n".join(lines))
    assert read.has(blob)
    with pytest.raises(PayloadMissing, match="not in the trace"):
        read.tree(blob)


def test_a_nonce_has_its_length() -> None:
    writer = BlobWriter(random.Random(1).randbytes)
    with pytest.raises(ValueRefused):
        writer.put_nonce(b"short")
    with pytest.raises(ValueRefused):
        writer.put_bytes(b"\x00" * (PART_BYTES + 1))


def test_what_no_reader_would_unfold_is_refused_when_recorded() -> None:
    made = maker()
    hold(made, ["x" * PART_BYTES] * 60)
    before = made.data
    with pytest.raises(ValueRefused, match="readers of the trace refuse"):
        made.put(["y" * PART_BYTES] * 100)
    assert made.blobs.take() == b""
    assert made.data == before
    after = hold(made, "after")
    assert journal(made).tree(after) == "after"
