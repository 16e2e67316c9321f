"""Large traces open from their end, by hints that are checked."""

from __future__ import annotations

import json

import pytest

from agentloom.errors import FormatError, IntegrityError
from agentloom.format import journal as journal_module
from agentloom.format import tail
from agentloom.format.journal import Journal, JournalWriter, check
from agentloom.format.limits import LINE_BYTES
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
def test_a_stretch_of_a_large_file_reads_little_of_it() -> None:
    data = trace(1500)
    file = File(data)
    head = tail.stretch(file.read, 0, file.size, lambda _, count: count >= 3)
    assert [entry["kind"] for _, entry in head.entries] == ["start", "request", "outcome"]
    assert head.entries[0][1]["input"] in head.blobs
    known = tail.marks(file.read, file.size)
    mark = next(mark for mark in known if mark.seq <= 1501)
    middle = tail.stretch(file.read, mark.offset, file.size, lambda entry, _: entry["seq"] >= 1501)
    offset, entry = middle.entries[-1]
    assert entry["seq"] == 1501
    assert json.loads(data[offset : data.index(b"\n", offset)]) == entry
    blob = entry["req" if "req" in entry else "val"]
    assert data.startswith(b'{"blob":"%b"' % blob.encode(), middle.blobs[blob])
    assert file.count < len(data) / 4


@pytest.mark.usefixtures("every_50")
def test_marks_count_the_calls_before_them() -> None:
    data = trace(200)
    entries = Journal.parse(data).entries
    for mark in tail.marks(File(data).read, len(data)):
        assert mark.calls == sum(entry["kind"] == "request" for entry in entries[: mark.seq])


@pytest.mark.usefixtures("every_50")
@pytest.mark.parametrize("lie", [7, 10**9, -3])
def test_wrong_hints_are_not_followed(lie: int) -> None:
    data = trace(120)
    line = entry_line(data, "index", 3)

    def edit(text: bytes) -> bytes:
        entry = json.loads(text)
        entry["offset"] = lie
        return json.dumps(entry, separators=(",", ":")).encode()

    file = File(edited(data, line, edit))
    assert len(tail.marks(file.read, file.size)) < 4


def test_small_and_torn_files() -> None:
    data = trace(3)
    for size in (len(data), len(data) - 5):
        file = File(data[:size])
        assert tail.marks(file.read, file.size) == []
        entries = tail.stretch(file.read, 0, size, lambda *_: False).entries
        assert entries[-1][1]["kind"] == ("end" if size == len(data) else "outcome")


def test_a_stretch_with_damage_names_the_place() -> None:
    data = trace(3)
    third = [offset for offset, _ in tail.stretch(File(data).read, 0, len(data), lambda *_: False).entries][2]
    changed = data[:third] + data[third:].replace(b'"at":', b'"at":1', 1)
    with pytest.raises(IntegrityError) as caught:
        tail.stretch(File(changed).read, 0, len(changed), lambda *_: False)
    assert caught.value.code == "chain.prev"
    assert caught.value.offset is not None
    assert caught.value.offset > third
    broken = data[:third] + b'{"seq":' + data[third + 8 :]
    with pytest.raises(FormatError, match=r"json\.syntax"):
        tail.stretch(File(broken).read, 0, len(broken), lambda *_: False)


def test_lines_longer_than_what_is_read_at_once_come_whole() -> None:
    made = Maker("large").start().request("root/a#0", "tool", "x", {}).outcome("root/a#0", "z" * 900_000)
    found = tail.stretch(File(made.data).read, 0, len(made.data), lambda *_: False)
    assert [entry["kind"] for _, entry in found.entries] == ["start", "request", "outcome"]
    assert found.entries[-1][1]["val"] in found.blobs
    endless = made.data + b'{"seq":' + b"9" * (LINE_BYTES + 1)
    with pytest.raises(FormatError) as caught:
        tail.stretch(File(endless).read, 0, len(endless), lambda *_: False)
    assert caught.value.code == "line.long"


@pytest.mark.usefixtures("every_50")
def test_going_on_keeps_the_index() -> None:
    data = trace(60)
    open_data = data[: data.rindex(b'{"blob"')]
    writer = JournalWriter.resume(Journal.parse(open_data))
    assert writer.offset == len(open_data)
    for n in range(60):
        open_data += writer.entry("note", {}, at=n)
    assert check(open_data).consistent
    found = tail.marks(File(open_data).read, len(open_data))
    assert len(found) == 3
    assert found[0].calls == 60


def index_line(seq: int, offset: int, last: object = None, **more: object) -> bytes:
    fields = {"seq": seq, "kind": "index", "offset": offset, "last": last, **more}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def found_in(data: bytes, size: int | None = None) -> list[tail.Mark]:
    return tail.marks(File(data).read, len(data) if size is None else size)


FIRST = b'{"seq":0,"kind":"start"}\n'


def test_marks_follow_hints_backwards_until_one_is_wrong() -> None:
    data, offsets = FIRST, [0]
    for seq in range(1, 5):
        offsets.append(len(data))
        data += index_line(seq, len(data), offsets[-2] or None, calls=seq * 10)
    assert found_in(data) == [tail.Mark(seq, offsets[seq], seq * 10) for seq in (4, 3, 2, 1)]
    fourth, *older = found_in(data)
    newest = fourth.offset
    for hint in (offsets[4], offsets[4] + 5, offsets[3] + 1, 0, -1, 10**9, len(FIRST) - 1, "x", 1.5):
        other = data[:newest] + index_line(4, newest, hint)
        expected = [] if type(hint) in (str, float) else [tail.Mark(4, newest, None)]
        assert [mark for mark in found_in(other) if mark.seq == 4] == expected, hint
    assert found_in(data[:newest] + index_line(4, newest, offsets[2])) == [tail.Mark(4, newest), *older[1:]]
    assert found_in(data[:newest] + index_line(4, newest, None, calls="7"))[0].calls is None
    assert found_in(data[:-1]) == older  # a last line without its newline is none
    assert found_in(data, newest) == older


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"index","seq":1,"offset":%d,"last":null}\n',
        b'x{"seq":1,"kind":"index","offset":%d,"last":null}\n',
        b'{"seq":1,"kind":"index","offset":%d}}\n',
        b'{"seq":"1","kind":"index","offset":%d,"last":null}\n',
        b'{"seq":1,"said":"\\"kind\\":\\"index\\"","kind":"note","offset":%d,"last":null}\n',
        b'{"seq":1,"kind":"note","of":{"kind":"index"},"offset":%d,"last":null}\n',
    ],
)
def test_what_only_looks_like_an_index_entry_is_none(line: bytes) -> None:
    assert found_in(FIRST + line % len(FIRST)) == []
    real = index_line(2, len(FIRST))
    data = FIRST + real
    assert found_in(data + line % len(data)) == [tail.Mark(2, len(FIRST))]
    within = FIRST + b"x" + index_line(1, len(FIRST) + 1)  # a place within a line is no place
    assert found_in(within + index_line(2, len(within), len(FIRST) + 1)) == [tail.Mark(2, len(within))]


def test_the_last_index_is_searched_for_in_growing_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "_STEP", 100)
    monkeypatch.setattr(tail, "LINE_BYTES", 3200)
    data = FIRST + index_line(1, len(FIRST), calls=3)
    for beyond, there in ((0, True), (300, True), (1500, True), (1530, True), (1541, False), (3000, False)):
        longer = data + b"y" * beyond
        assert (found_in(longer) == [tail.Mark(1, len(FIRST), 3)]) == there, beyond
    file = File(b"z" * 200_000 + data)
    tail.marks(file.read, file.size)
    assert file.count < 2 * 1600 + 1100
    assert found_in(b"z" * 1000) == []


def test_a_stretch_of_nothing_has_no_head() -> None:
    assert tail.stretch(File(b"").read, 0, 0, lambda *_: True) == tail.Lines([], "", {})


def test_a_stretch_ends_where_it_may_read_no_further() -> None:
    data = trace(3)
    whole = tail.stretch(File(data).read, 0, len(data), lambda *_: False)
    third, second = whole.entries[2][0], whole.entries[1][0]
    file = File(data)
    part = tail.stretch(file.read, second, third, lambda *_: False)
    assert [offset for offset, _ in part.entries] == [second]
    assert file.count == third - second


def test_a_damaged_blob_line_does_not_end_a_stretch() -> None:
    data = FIRST + b'{"blob":"\xff' + b"f" * 70 + b'"}\n'
    found = tail.stretch(File(data).read, 0, len(data), lambda *_: False)
    assert list(found.blobs.values()) == [len(FIRST)]


@pytest.mark.parametrize("line", [b'{"seq":"0","kind":"note"}\n', b'{"seq":1,"kind":2}\n', b'{"seq":1}\n'])
def test_a_line_that_is_no_entry_is_named_with_its_place(line: bytes) -> None:
    for wrong, code, words in (
        (line, "entry.field", "an entry needs its number and its kind"),
        (b'{"seq":}\n', "json.syntax", "not JSON"),
    ):
        data = FIRST + wrong
        with pytest.raises(FormatError, match=words) as caught:
            tail.stretch(File(data).read, 0, len(data), lambda *_: False)
        assert (caught.value.code, caught.value.offset) == (code, len(FIRST))
    with pytest.raises(IntegrityError, match="prev is not the digest") as broken:
        tail.stretch(File(FIRST * 2).read, 0, 2 * len(FIRST), lambda *_: False)
    assert (broken.value.code, broken.value.offset) == ("chain.prev", len(FIRST))


@pytest.mark.parametrize("step", [7, 60, 64, 1000])
def test_a_line_may_have_so_many_bytes(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(tail, "_STEP", step)
    monkeypatch.setattr(tail, "LINE_BYTES", 60)
    for size, good in ((59, True), (60, True), (61 if step < 60 else 300 + step, False)):
        data = b"short\n" + b"x" * size + b"\n"
        lines = tail._lines(File(data).read, 0, len(data))
        assert next(lines) == (0, b"short")
        if good:
            assert list(lines) == [(6, b"x" * size)]
        elif step < 60:
            with pytest.raises(FormatError, match="a line of more than 60 bytes") as caught:
                list(lines)
            assert (caught.value.code, caught.value.offset) == ("line.long", 6)


def test_the_first_line_may_have_as_many_bytes_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "LINE_BYTES", 60)
    data = b"x" * 60 + b"\n"
    assert list(tail._lines(File(data).read, 0, len(data))) == [(0, b"x" * 60)]
