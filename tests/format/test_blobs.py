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
from agentloom.format.journal import Journal, check
from agentloom.format.limits import PART_BYTES
from spec.vector_maker import Maker
from tests.format.strategies import FEW, STEADY, same, trees


def maker() -> Maker:
    return Maker("tests").start()


def journal(made: Maker) -> Journal:
    data = made.data if b'"kind":"end"' in made.data else made.end().data
    verdict = check(data)
    assert verdict.ok, verdict.message
    assert verdict.unreferenced == []
    return Journal.parse(data)


def hold(made: Maker, tree: Any, series: str | None = None) -> str:
    blob = made.put(tree, series)
    made.entry("note", val=blob)
    return blob


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


def test_a_history_that_comes_back_has_its_id_again() -> None:
    made = maker()
    one, two = {"messages": ["y" * 300]}, {"messages": ["y" * 300, "z" * 300]}
    first = hold(made, one, "s")
    second = hold(made, two, "s")
    assert (hold(made, one, "s"), hold(made, two, "s")) == (first, second)


def growing(turns: int, edit: Any = None) -> tuple[Maker, list[tuple[str, Any]]]:
    made = maker()
    messages: list[Any] = [{"role": "system", "content": "rules " * 80}]
    sent: list[tuple[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{turn} " + "question " * 30})
        if edit:
            messages = edit(messages, turn)
        request = {"model": "m", "messages": list(messages)}
        sent.append((hold(made, request, "model:m"), request))
        answer = {"role": "assistant", "content": f"{turn} " + "answer " * 40}
        hold(made, answer)
        messages.append(answer)
    return made, sent


@pytest.mark.parametrize(
    ("edit", "bound"),
    [
        (None, 2.1),
        (lambda messages, turn: [*messages[:-1], {**messages[-1], "now": turn}], 2.1),
        (lambda messages, turn: [messages[0], *messages[-8:]], 2.3),
        (lambda messages, turn: messages if turn % 10 else [messages[0], messages[-1]], 2.2),
        (lambda messages, turn: [*messages, {"role": "system", "content": f"the time is {turn}"}], 2.2),
    ],
    ids=["grows", "last edited", "window", "compacted", "suffix"],
)
def test_a_run_grows_with_its_turns(edit: Any, bound: float) -> None:
    made, sent = growing(40, edit)
    assert len(growing(80, edit)[0].data) < bound * len(made.data)
    read = journal(made)
    for blob, request in sent:
        assert same(read.tree(blob), request)


def test_an_answer_that_is_sent_back_is_stored_once() -> None:
    made, _ = growing(10)
    assert made.data.count(b'"5 ' + b"answer " * 40) == 1


def test_a_message_edited_in_place_is_seen() -> None:
    made = maker()
    messages: list[Any] = [{"content": "a" * 300}, {"content": "b" * 300}]
    first = hold(made, {"messages": messages}, "s")
    messages[0]["content"] = "A" + "a" * 299
    second = hold(made, {"messages": messages}, "s")
    read = journal(made)
    assert read.tree(first) == {"messages": [{"content": "a" * 300}, {"content": "b" * 300}]}
    assert read.tree(second) == {"messages": messages}


def test_two_conversations_of_one_series_take_turns() -> None:
    def data(turns: int) -> int:
        made = maker()
        talks: list[list[Any]] = [["left " * 80], ["right " * 80]]
        for turn in range(turns):
            talk = talks[turn % 2]
            talk.append(f"{turn} " * 60)
            hold(made, {"messages": list(talk)}, "s")
        return len(made.data)

    assert data(80) < 2.1 * data(40)


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


def test_long_chains_are_read_without_recursion() -> None:
    made = maker()
    messages: list[Any] = ["m" * 300]
    for turn in range(3000):
        messages.append(turn)
        last = hold(made, {"messages": list(messages)}, "s")
    assert journal(made).tree(last) == {"messages": messages}


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
