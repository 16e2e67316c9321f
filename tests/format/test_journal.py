"""Writing entries, reading whole traces, and what the limits do."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError, IntegrityError, LoomError, UnsupportedVersion
from agentloom.format import limits
from agentloom.format.blobs import BlobWriter
from agentloom.format.journal import Journal, JournalWriter, check
from agentloom.format.scanning import scan
from spec import verify
from spec.vector_maker import Maker, edited, entry_line, finished, join, lines, small
from spec.vector_traces import erase
from tests.format.strategies import FEW

TRACE = finished()


def test_an_entry_is_one_line_chained_to_the_one_before() -> None:
    writer = JournalWriter()
    first = writer.entry("start", {"a": 1}, at=5)
    assert first == b'{"seq":0,"prev":"' + b"0" * 64 + b'","at":5,"kind":"start","a":1}\n'
    digest = hashlib.sha256(b"agentloom/v1/entry\x00" + first[:-1]).hexdigest()
    assert (writer.head, writer.seq, writer.offset) == (digest, 0, len(first))
    assert json.loads(writer.entry("note", {}, at=6))["prev"] == digest


@pytest.mark.parametrize("name", ["seq", "prev", "at", "kind"])
def test_the_fixed_members_are_not_the_callers(name: str) -> None:
    with pytest.raises(FormatError, match="not the caller's"):
        JournalWriter().entry("note", {name: 1}, at=1)


def test_reading_gives_back_what_was_written() -> None:
    journal = Journal.parse(TRACE)
    assert [entry["kind"] for entry in journal.entries] == ["start", *["request", "outcome"] * 3, "end"]
    assert (journal.closed, journal.torn, journal.size) == (True, 0, len(TRACE))
    assert journal.tree(journal.entries[4]["val"]) == {"total": 40, "paid": True}
    assert journal.nonce is not None
    assert len(journal.nonce) == 32
    request: Any = journal.tree(journal.entries[5]["req"])
    assert len(request["messages"]) == 4


def test_going_on_after_reading() -> None:
    made = small()
    writer = JournalWriter.resume(Journal.parse(made.data))
    assert (writer.head, writer.seq, writer.offset) == (made.journal.head, made.journal.seq, len(made.data))
    data = (
        made.data
        + writer.entry("resume", {"epoch": 2}, at=1)
        + writer.entry("end", {"status": "cancelled"}, at=2)
    )
    assert check(data).ok


def test_the_bytes_to_cut_off() -> None:
    whole = small().data
    start = Maker("only").start().data
    last = entry_line(whole, "request", 2)
    boundary = len(join(lines(whole)[:last]))
    for size in range(boundary, len(whole) + 1):
        journal = Journal.parse(whole[:size])
        assert journal.size == (boundary if size < len(whole) else len(whole))
        assert journal.torn == size - journal.size
        assert Journal.parse(whole[: journal.size]).torn == 0
    for size in range(start.index(b"\n") + 1, len(start) + 1):
        assert Journal.parse(start[:size]).size == start.rindex(b"\n", 0, size) + 1


def test_reading_past_damage() -> None:
    line = entry_line(TRACE, "outcome", 1)
    broken = edited(TRACE, line, lambda text: text.replace(b'"seq":4', b'"seq":5'))
    journal = Journal.parse(broken, strict=False)
    assert len(journal.entries) == 4
    assert journal.fault is not None
    assert (journal.fault.code, journal.fault.line) == ("entry.seq", line)
    with pytest.raises(IntegrityError) as caught:
        Journal.parse(broken)
    assert caught.value.offset == len(join(lines(TRACE)[: line - 1]))
    with pytest.raises(FormatError):
        Journal.parse(b"nothing", strict=False)


def test_unknown_members_are_kept() -> None:
    extra: dict[str, Any] = {"x-a": [1, {"b": None}], "later": 1.5}
    made = small().entry("x-review", **extra).end()
    journal = Journal.parse(made.data)
    assert journal.entries[7]["x-a"] == [1, {"b": None}]
    assert journal.entries[7]["later"] == 1.5


def test_a_newer_version_says_so() -> None:
    with pytest.raises(UnsupportedVersion, match=r"version 2\.0") as caught:
        Journal.parse(small(version="2.0").data)
    assert caught.value.hint == "upgrade agentloom"


def test_an_erased_payload_is_told_from_a_lost_one() -> None:
    journal = Journal.parse(erase())
    assert journal.nonce is None
    gone = journal.entries[4]["val"]
    assert not journal.has(gone)
    with pytest.raises(LoomError, match=r"was erased \(entry 8\)"):
        journal.tree(gone)
    assert journal.tree(journal.entries[0]["input"]) == {"args": ["refund order 812"], "kwargs": {}}


def test_the_line_limit() -> None:
    start = Maker("long").start().data
    writer = JournalWriter.resume(Journal.parse(start))
    room = limits.LINE_BYTES + 1 - len(writer.entry("note", {"x-t": ""}, at=1))
    for extra, code in ((0, "end.missing"), (1, "line.long")):
        writer = JournalWriter.resume(Journal.parse(start))
        line = writer.entry("note", {"x-t": "x" * room}, at=1).replace(b"xx", b"xx" + b"x" * extra, 1)
        assert len(line) == limits.LINE_BYTES + 1 + extra
        verdict = check(start + line)
        assert verdict.code == code
        assert verify.check(start + line)["consistent"] == verdict.consistent == (extra == 0)
    with pytest.raises(FormatError, match="limit is 16777216") as caught:
        writer.entry("note", {"x-t": "x" * (room + 1)}, at=1)
    assert caught.value.code == "line.long"


def test_bytes_over_a_part_are_refused() -> None:
    made = Maker("part").start()
    for size, good in ((limits.PART_BYTES, True), (limits.PART_BYTES + 1, False)):
        writer = BlobWriter(made.random.randbytes)
        blob = writer._put_binary("bytes", b"\x00" * size)
        data = (
            made.data
            + writer.take()
            + JournalWriter.resume(Journal.parse(made.data)).entry("note", {"val": blob}, at=1)
        )
        assert check(data).consistent == good == verify.check(data)["consistent"]
        assert good or check(data).code == "blob.size"


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


@FEW
@given(st.binary(max_size=300))
def test_no_bytes_raise_in_a_check(data: bytes) -> None:
    assert not check(data).ok
    assert not check(TRACE + data).ok or data == b""
    assert verify.check(data)["consistent"] is False


@FEW
@given(st.data())
def test_two_checkers_agree_on_damaged_traces(data: Any) -> None:
    parts = lines(TRACE)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(parts) - 1))
        other = data.draw(st.integers(0, len(parts) - 1))
        what = data.draw(st.sampled_from(["drop", "copy", "swap", "cut", "byte"]))
        if what == "drop" and len(parts) > 1:
            del parts[at]
        elif what == "copy":
            parts.insert(other, parts[at])
        elif what == "swap":
            parts[at], parts[other] = parts[other], parts[at]
        elif what == "cut":
            parts[at] = parts[at][: data.draw(st.integers(0, len(parts[at])))]
        elif parts[at]:
            index = data.draw(st.integers(0, len(parts[at]) - 1))
            parts[at] = parts[at][:index] + bytes([data.draw(st.integers(0, 255))]) + parts[at][index + 1 :]
        if not parts:
            return
    damaged = join(parts)
    verdict, result = check(damaged), verify.check(damaged)
    assert (verdict.consistent, verdict.complete) == (result["consistent"], result["complete"])
    assert (verdict.line is None) == (result["place"] is None)
    assert verdict.line is None or (verdict.line, verdict.offset) == result["place"], (
        verdict.message,
        result["message"],
    )


def test_a_scan_of_12000_calls_is_linear() -> None:
    made = Maker("many").start()
    for n in range(300):
        made.request(f"root/a#{n}", "tool", "x", {"n": n}).outcome(f"root/a#{n}", n)
    found = scan(made.end().data)
    assert found.fault is None
    assert len(found.entries) == 602
