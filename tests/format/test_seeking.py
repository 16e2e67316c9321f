"""Single lines of a large file are found by what they hold, and checked."""

from __future__ import annotations

import pytest

from agentloom.errors import FormatError
from agentloom.format import seeking
from agentloom.format.journal import Journal
from agentloom.format.seeking import Blobs, entries_naming
from spec.vector_maker import Maker


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


def trace(calls: int) -> bytes:
    made = Maker("seek").start()
    for n in range(calls):
        made.request(f"root/a#{n}", "tool", "x", {"n": n, "said": "root/a#7", "text": "y" * 300})
        made.outcome(f"root/a#{n}", f"{n}" * 300)
    return made.end().data


@pytest.mark.parametrize("wide", [64, 1000, 1 << 22])
def test_every_blob_is_found_whatever_the_width_of_the_search(
    wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeking, "_WIDE", wide)
    data = trace(20)
    journal = Journal.parse(data)
    file = File(data)
    blobs = Blobs(file.read, file.size, {}, near=len(data) // 2)
    assert len(journal.blobs) > 40  # more than are searched for one by one
    for blob in journal.blobs:
        assert blobs[blob] == (journal.form(blob), journal.data(blob))
    with pytest.raises(KeyError):
        blobs["0" * 64]


def test_a_damaged_blob_and_a_wrong_place_are_noticed() -> None:
    data = trace(3)
    blob = Journal.parse(data).entries[1]["req"]
    at = data.index(b'{"blob":"%b"' % blob.encode())
    file = File(data[:at] + data[at:].replace(b'"n":0', b'"n":1', 1))
    with pytest.raises(FormatError, match=r"blob\.id"):
        Blobs(file.read, file.size, {})[blob]
    other = Journal.parse(data).entries[3]["req"]
    with pytest.raises(KeyError, match=other):
        Blobs(File(data).read, len(data), {other: at})[other]
    with pytest.raises(FormatError, match=r"tail\.torn"):
        Blobs(File(data[: at + 200]).read, at + 200, {blob: at})[blob]


@pytest.mark.parametrize("wide", [64, 1 << 22])
def test_entries_that_name_a_text(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "_WIDE", wide)
    data = trace(12)
    file = File(data)
    found = [
        (entry["kind"], entry["call"]) for _, entry in entries_naming(file.read, 0, file.size, "root/a#7")
    ]
    assert found == [("request", "root/a#7"), ("outcome", "root/a#7")]
    assert list(entries_naming(file.read, 0, file.size, "root/a")) == []


@pytest.mark.parametrize("wide", [4, 5, 7, 64])
@pytest.mark.parametrize(
    "data", [b"abab..abab", b"ab", b".ab", b"aabab", b"...aba", b"", b"a", b"ababab" * 5]
)
def test_every_place_is_found_once_across_the_edges_of_windows(
    data: bytes, wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeking, "_WIDE", wide)
    for sought in (b"ab", b"aba", b"a"):
        for start in range(len(data) + 1):
            there = [at for at in range(start, len(data)) if data.startswith(sought, at)]
            assert list(seeking._places(File(data).read, start, len(data), sought)) == there, (sought, start)


def test_a_search_reads_no_further_than_it_may() -> None:
    file = File(b"ab.ab.ab")
    assert list(seeking._places(file.read, 0, 5, b"ab")) == [0, 3]
    assert file.count == 5


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, (1 << 16) + 1024, (1 << 16) + 1025])
def test_the_start_of_a_line_is_found_however_long_it_is(length: int) -> None:
    data = b"first\n" + b"x" * length + b"y\n"
    read = File(data).read
    assert seeking._line_start(read, 6 + length, 0) == 6
    assert seeking._line_start(read, 6 + length, 6) == 6
    assert seeking._line_start(read, 3, 0) == 0
    assert seeking._whole_line(read, 6) == b"x" * length + b"y"


def test_an_entry_in_which_a_text_stands_twice_comes_once_with_its_place() -> None:
    made = Maker("twice").start()
    made.request("root/a#0", "tool", "twice", {}, src="twice").outcome("root/a#0", 1)
    data = made.request("root/a#1", "tool", "twice", {}).data
    found = list(entries_naming(File(data).read, 0, len(data), "twice"))
    assert [entry["call"] for _, entry in found] == ["root/a#0", "root/a#1"]
    for offset, entry in found:
        assert data.startswith(b'{"seq":%d,' % entry["seq"], offset)
    at = found[1][0]
    damaged = data[:at] + data[at:].replace(b'"kind":"request"', b'"kind": request ', 1)
    entries = entries_naming(File(damaged).read, 0, len(damaged), "twice")
    assert next(entries)[0] == found[0][0]
    with pytest.raises(FormatError) as caught:
        next(entries)
    assert caught.value.offset == at
    later = list(entries_naming(File(data).read, at, len(data), "twice"))
    assert later == found[1:]


def test_a_search_from_within_a_file_reads_no_further_than_it_may() -> None:
    file = File(b"XX.ab.XX.ab")
    assert list(seeking._places(file.read, 2, 7, b"X")) == [6]
    assert file.count == 5


def test_a_blob_near_where_it_is_expected_is_found_without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "_WIDE", 1000)
    monkeypatch.setattr(seeking, "_NEAR", 4000)
    data = trace(60)
    blob = Journal.parse(data).entries[61]["req"]
    at = data.index(b'{"blob":"%b"' % blob.encode())
    for near, most in ((at - 1, 3000), (at - 3000, 6000), (at + 1, at + 8000), (at - 4200, at + 8000)):
        file = File(data)
        assert blob not in Blobs(file.read, file.size, {})
        assert Blobs(file.read, file.size, {}, near)[blob][0] == "json"
        assert file.count < most
    for place in (at, at + 1):  # outside of the stretch that is searched first
        short = File(data[: at + 2000])
        assert Blobs(short.read, short.size, {}, near=place)[blob][0] == "json"


def test_a_blob_that_was_read_is_kept() -> None:
    data = trace(3)
    blob = Journal.parse(data).entries[1]["req"]
    file = File(data)
    blobs = Blobs(file.read, file.size, {})
    first = blobs[blob]
    count = file.count
    assert blobs[blob] == first
    assert blobs.get(blob) == first
    assert file.count == count
    with pytest.raises(KeyError, match="not there"):
        blobs["not there"]


def test_after_some_searches_the_places_of_all_blobs_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "_SEARCHES", 4)
    data = trace(30)
    journal = Journal.parse(data)
    file = File(data.replace(b'{"blob":"' + journal.blobs[7].encode(), b'{"blob":"\xff' + b"0" * 63))
    known: dict[str, int] = {}
    blobs = Blobs(file.read, file.size, known)
    for number, blob in enumerate(journal.blobs[10:40], 1):
        count = file.count
        assert blobs[blob] == (journal.form(blob), journal.data(blob))
        assert len(known) == (number if number < 4 else len(journal.blobs))
        assert number <= 4 or file.count - count < 3000
    with pytest.raises(KeyError):
        blobs[journal.blobs[7]]


def test_a_damaged_blob_is_named_with_its_place() -> None:
    data = trace(3)
    blob = Journal.parse(data).entries[1]["req"]
    at = data.index(b'{"blob":"%b"' % blob.encode())
    for damaged, code, words in (
        (data[:at] + data[at:].replace(b'"n":0', b'"n":1', 1), "blob.id", f"blob {blob[:12]}"),
        (data[: at + 200], "tail.torn", "the file ends within this line"),
    ):
        with pytest.raises(FormatError, match=words) as caught:
            Blobs(File(damaged).read, len(damaged), {blob: at})[blob]
        assert (caught.value.code, caught.value.offset) == (code, at)


def test_a_line_is_read_no_further_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeking, "_STEP", 100)
    for limit, size, good in (
        (1024, 1024, True),
        (1124, 1124, True),
        (1123, 1200, False),
        (1300, 1300, True),
    ):
        monkeypatch.setattr(seeking, "LINE_BYTES", limit)
        data = b"first\n" + b"x" * size + b"\n" + b"y" * 9000
        if good:
            assert seeking._whole_line(File(data).read, 6) == b"x" * size
        else:
            with pytest.raises(FormatError, match=f"more than {limit} bytes") as caught:
                seeking._whole_line(File(data).read, 6)
            assert (caught.value.code, caught.value.offset) == ("line.long", 6)
