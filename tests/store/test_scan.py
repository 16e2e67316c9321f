"""Reading enough of a trace to list it."""

from __future__ import annotations

import pytest

from agentloom.store import scan as scan_module
from agentloom.store.base import RunRow
from agentloom.store.scan import Source, damaged, live, scan, scan_bytes, sort_key
from agentloom.testing.store_contract import Sample


def test_runs_sort_by_time_and_strange_names_come_last() -> None:
    names = ["zzz", Sample(2).run, "notes", Sample(3).run, Sample(1).run]
    assert sorted(names, key=sort_key, reverse=True) == [
        Sample(3).run,
        Sample(2).run,
        Sample(1).run,
        "zzz",
        "notes",
    ]


def test_parents_and_children() -> None:
    sample = Sample(2, parent={"run": Sample(1).run, "head": "0" * 64})
    assert scan_bytes(sample.whole(), sample.run, running=False).parent == Sample(1).run


def test_open_runs_are_told_apart_by_who_writes_them() -> None:
    row = RunRow("r", "open")
    assert (live(row, True).status, live(row, False).status) == ("running", "crashed")
    assert scan_bytes(Sample().start(), Sample().run, running=True).status == "running"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\n", "start entry"),
        (b"x", "start entry"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 50 + b"\n", "start entry"),
        (b'{"seq":0,\n', "not JSON"),
        (Sample().start().replace(b'"1.0"', b'"9.1"'), "9.1"),
        (Sample().start() + b"nonsense\n", "neither an entry nor a blob"),
        (Sample().start() + b'{"seq":1,nonsense\n', "not JSON"),
        (Sample().start() + b'{"seq":1,"kind":"end","status":"great"}\n', "great"),
    ],
)
def test_damage_is_said(data: bytes, words: str) -> None:
    row = scan_bytes(data, Sample().run, running=True)
    assert row.status == "damaged"
    assert words in str(row.problem)
    assert damaged("r", 3, "why").problem == "why"


def test_entries_of_the_wrong_shape_break_nothing() -> None:
    for line in (b'{"seq":1}', b'{"seq":1,"kind":7}', b'{"seq":1,"kind":"request","type":[],"name":{}}'):
        row = scan_bytes(Sample().start() + line + b"\n", Sample().run, running=False)
        assert row.status == "crashed", line


def test_both_ways_of_reading_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample(1, tags={"user": "ann", "long": "x" * 3000}, conversation="talk")
    parts = [sample.start(), *(part for _ in range(20) for part in sample.call(size=20_000))]
    for ending in ([], [sample.end(), sample.mark("tag", "late"), sample.mark("flag", "odd")]):
        parts += ending
        data = b"".join(parts)
        whole = scan(Source.of(data), sample.run, deep=True)
        monkeypatch.setattr(scan_module, "LARGE", 1000)
        ends = scan(Source.of(data), sample.run, deep=False)
        monkeypatch.undo()
        assert (whole.partial, ends.partial) == (False, True)
        for name in (
            "run",
            "status",
            "agent",
            "started",
            "ended",
            "tags",
            "conversation",
            "size",
            "head",
            "flags",
        ):
            assert getattr(whole, name) == getattr(ends, name), name
        if ending:
            assert whole.total == ends.total == 20


def test_a_long_last_line_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "LARGE", 1000)
    sample = Sample()
    text = " ".join(str(number) for number in range(150_000))  # one payload of almost a mebibyte
    parts = [sample.start(), *sample.call(size=900_000), sample.end("failed"), sample.mark("note", text)]
    row = scan(Source.of(b"".join(parts)), sample.run, deep=False)
    assert (row.status, row.partial, row.head) == ("failed", True, sample.head)


def test_a_line_without_end_is_not_read_into_memory() -> None:
    asked = 0

    def span(start: int, count: int) -> bytes:
        nonlocal asked
        asked += count
        return b"x" * count

    row = scan(Source(1 << 40, span), "r", deep=True)
    assert row.status == "damaged"
    assert asked < 20 << 20
