"""Large traces open from their end, by hints that are checked."""

from __future__ import annotations

import json

import pytest

from agentloom.errors import FormatError
from agentloom.format import journal as journal_module
from agentloom.format import tail
from agentloom.format.journal import Journal, JournalWriter, check
from spec import verify
from spec.vector_maker import Maker, edited, entry_line


class File:
    """Bytes that count how many of them were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.count = 0

    def read(self, start: int, count: int) -> bytes:
        part = self.data[start : start + count]
        self.count += len(part)
        return part


@pytest.fixture
def every_50(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "INDEX_EVERY", 50)


def trace(calls: int, payload: int = 2000) -> bytes:
    made = Maker("tail").start()
    made.journal.skip(len(made.data) - made.journal.offset)
    for n in range(calls):
        made.request(f"root/a#{n}", "tool", "x", {"n": n, "text": chr(97 + n % 26) * payload})
        made.outcome(f"root/a#{n}", n)
    return made.end(totals={"calls": calls, "deliveries": calls}).data


@pytest.mark.usefixtures("every_50")
def test_index_entries_stand_where_they_say_and_keep_the_trace_whole() -> None:
    data = trace(120)
    assert check(data).ok
    assert verify.check(data)["complete"]
    offsets = [entry["offset"] for entry in Journal.parse(data).entries if entry["kind"] == "index"]
    assert len(offsets) == 4
    assert all(data[offset - 1 : offset + 7] == b'\n{"seq":' for offset in offsets)
    assert [mark.offset for mark in tail.marks(File(data).read, len(data))] == offsets[::-1]


@pytest.mark.usefixtures("every_50")
def test_one_call_of_a_large_file_reads_little_of_it() -> None:
    data = trace(1500)
    file = File(data)
    head = tail.header(file.read, file.size)
    assert head.entries[0]["agent"] == "support"
    assert head.entries[0]["input"] in head.blobs
    assert tail.last_entries(file.read, file.size)[0]["kind"] == "end"
    known = tail.marks(file.read, file.size)
    middle = tail.stretch_with(file.read, file.size, 1501, known)
    assert middle.entries[-1]["seq"] == 1501
    assert middle.entries[-1]["req" if "req" in middle.entries[-1] else "val"] in middle.blobs
    assert file.count < len(data) / 4


@pytest.mark.usefixtures("every_50")
@pytest.mark.parametrize("lie", [7, 10**9, -3])
def test_a_wrong_hint_costs_time_alone(lie: int) -> None:
    data = trace(120)
    line = entry_line(data, "index", 3)

    def edit(text: bytes) -> bytes:
        entry = json.loads(text)
        entry["offset"] = lie
        return json.dumps(entry, separators=(",", ":")).encode()

    file = File(edited(data, line, edit))
    known = tail.marks(file.read, file.size)
    assert len(known) < 4
    assert tail.stretch_with(file.read, file.size, 200, known).entries[-1]["seq"] == 200


def test_small_and_torn_files() -> None:
    data = trace(3)
    for size in (len(data), len(data) - 5):
        file = File(data[:size])
        assert tail.marks(file.read, file.size) == []
        assert tail.last_entries(file.read, file.size, 2)[-1]["kind"] == (
            "end" if size == len(data) else "outcome"
        )
    with pytest.raises(FormatError, match="no entry 99"):
        tail.stretch_with(File(data).read, len(data), 99, [])


def test_the_last_entry_behind_a_large_payload() -> None:
    made = Maker("large").start().request("root/a#0", "tool", "x", {}).outcome("root/a#0", "z" * 900_000)
    assert tail.last_entries(File(made.data).read, len(made.data))[0]["kind"] == "outcome"


@pytest.mark.usefixtures("every_50")
def test_going_on_keeps_the_index() -> None:
    data = trace(60)
    open_data = data[: data.rindex(b'{"blob"')]
    writer = JournalWriter.resume(Journal.parse(open_data))
    assert writer.offset == len(open_data)
    for n in range(60):
        open_data += writer.entry("note", {}, at=n)
    assert check(open_data).consistent
    assert len(tail.marks(File(open_data).read, len(open_data))) == 3
