"""Writing entries, reading whole traces, and what the limits do."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from typing import Any

import pytest

from agentloom.errors import FormatError, IntegrityError, UnsupportedVersion
from agentloom.format import journal as journal_module
from agentloom.format import limits
from agentloom.format.blobs import BlobWriter
from agentloom.format.journal import Journal, JournalWriter, check
from spec import verify
from spec.vector_maker import Maker, edited, entry_line, finished, join, lines, small

TRACE = finished()


@dataclasses.dataclass
class Small:
    """Something that orjson would write as an object."""

    x: int


class Text(str):
    """Something that orjson would write as a text."""

    __slots__ = ()


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


@pytest.mark.parametrize("value", [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), Small(1), Text("x")], ids=type)
def test_what_is_no_tree_is_not_written_as_one(value: Any) -> None:
    """A date, an instance of a dataclass or of a subclass would be read back as something else."""
    writer = JournalWriter()
    with pytest.raises(TypeError):
        writer.entry("note", {"x": [value]}, at=1)
    assert (writer.seq, writer.offset) == (-1, 0)


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


@pytest.fixture
def every_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "INDEX_EVERY", 4)


def kinds_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.usefixtures("every_4")
def test_every_so_many_entries_an_index_entry_stands() -> None:
    writer = JournalWriter()
    data = writer.entry("start", {}, at=1)
    for number in range(10):
        writer.skip(5)
        data += b"....\n" + writer.entry("request" if number % 2 else "note", {}, at=number)
    data += writer.entry("end", {}, at=99)
    entries = [json.loads(line) for line in data.splitlines() if line != b"...."]
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    found = [entry for entry in entries if entry["kind"] == "index"]
    assert [(entry["seq"], entry["calls"], entry["at"]) for entry in found] == [
        (4, 1, 2),
        (8, 3, 5),
        (12, 4, 8),
    ]
    for entry, last in zip(found, [None, *(entry["offset"] for entry in found)], strict=False):
        assert data[entry["offset"] :].startswith(b'{"seq":%d,' % entry["seq"])
        assert entry["last"] == last
    assert entries[-1]["kind"] == "end"
    assert writer.offset == len(data)


@pytest.mark.usefixtures("every_4")
def test_an_end_entry_has_no_index_entry_after_it() -> None:
    writer = JournalWriter()
    for kind in ("start", "note", "note", "end"):
        line = writer.entry(kind, {}, at=1)
    assert line.count(b"\n") == 1
    assert writer.entry("tag", {}, at=1).count(b"\n") == 2


@pytest.mark.usefixtures("every_4")
def test_going_on_counts_on() -> None:
    made = Maker("count").start()
    made.journal.skip(len(made.data) - made.journal.offset)
    for number in range(5):
        made.request(f"a#{number}", "tool", "x", {})
    writer, again = made.journal, JournalWriter.resume(Journal.parse(made.data))
    assert (again.head, again.seq, again.offset) == (writer.head, writer.seq, len(made.data))
    for number in range(9):
        kind = "request" if number % 3 else "note"
        assert again.entry(kind, {}, at=number) == writer.entry(kind, {}, at=number)
    short = Maker("short").start().request("a#0", "tool", "x", {})
    again = JournalWriter.resume(Journal.parse(short.data))
    assert again.entry("note", {}, at=1).count(b"\n") == 1
    index = kinds_of(again.entry("note", {}, at=1))[-1]
    assert (index["kind"], index["last"], index["calls"], index["seq"]) == ("index", None, 1, 4)


def test_what_may_not_be_an_entry_is_named() -> None:
    with pytest.raises(FormatError) as caught:
        JournalWriter().entry("note", {"seq": 1}, at=1)
    assert caught.value.code == "entry.field"
    assert "note entry are not the caller's" in str(caught.value)
    writer = JournalWriter()
    with pytest.raises(FormatError, match="note entry of") as caught:
        writer.entry("note", {"x-t": "x" * limits.LINE_BYTES}, at=1)
    assert caught.value.code == "line.long"
    assert (writer.seq, writer.offset, writer.head) == (-1, 0, "0" * 64)
