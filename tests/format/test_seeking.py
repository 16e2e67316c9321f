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
    with pytest.raises(KeyError):
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
