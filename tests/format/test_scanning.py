"""One pass over damaged bytes: it ends at the first fault, never raises, and agrees with the stand-alone checker."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError, IntegrityError, UnsupportedVersion
from agentloom.format.journal import Journal, check
from agentloom.format.scanning import Fault, scan
from spec import verify
from spec.vector_maker import Maker, entry_line, finished, join, lines, small
from tests.format.strategies import FEW

TRACE = finished()


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


def test_a_fault_is_an_error_of_its_class() -> None:
    plain = Fault("line.kind", 3, 99, "odd").error()
    assert (type(plain), plain.code, plain.line, plain.offset, plain.hint) == (
        FormatError,
        "line.kind",
        3,
        99,
        None,
    )
    assert str(plain).startswith("odd (line 3, byte 99)")
    edited = Fault("blob.id", 3, 99, "odd", integrity=True).error()
    assert (type(edited), edited.code, edited.line, edited.offset) == (IntegrityError, "blob.id", 3, 99)
    newer = Fault("version.major", 1, 0, "odd", version=True).error()
    assert (type(newer), newer.code, newer.line, newer.offset) == (UnsupportedVersion, "version.major", 1, 0)
    assert newer.hint == "upgrade agentloom"
    assert str(newer).startswith("odd (line 1, byte 0)")


def test_a_pass_notes_where_every_line_stands() -> None:
    found = scan(TRACE)
    assert found.fault is None
    offset, entries = 0, 0
    for number, line in enumerate(lines(TRACE), 1):
        if line.startswith(b'{"seq"'):
            assert found.entry_lines[entries] == (number, offset)
            entries += 1
        else:
            assert (line[9:73].decode(), number, offset, entries) in found.blob_lines
        offset += len(line) + 1
    assert entries == len(found.entries) == len(found.digests)
    assert len(found.blob_lines) == len(found.blobs)
    assert found.whole(len(TRACE)) == len(TRACE)


def test_what_stands_before_a_fault_is_kept() -> None:
    parts = lines(TRACE)
    for number in range(2, len(parts)):
        for wrong, code in ((b"odd", "line.kind"), (parts[number - 1] + b"\r", "line.cr")):
            data = join([*parts[:number], wrong, *parts[number:]])
            found = scan(data)
            assert found.fault is not None
            assert (found.fault.code, found.fault.line) == (code, number + 1)
            assert found.fault.offset == len(join(parts[:number]))
            assert len(found.entries) + len(found.blobs) == number
            assert found.torn == 0
    twice = next(line for line in parts if line.startswith(b'{"blob"'))
    found = scan(join([*parts[:-1], twice, parts[-1]]))
    assert found.fault is not None
    assert found.fault.message == f"blob {twice[9:21].decode()} stands in the file twice"


def test_zeros_after_the_last_line_are_a_torn_append_and_elsewhere_a_fault() -> None:
    parts = lines(TRACE)
    zeros = scan(TRACE + b"\0" * 50 + b"\n")
    assert (zeros.fault, zeros.torn, zeros.whole(len(TRACE) + 51)) == (None, 51, len(TRACE))
    mixed = scan(TRACE + b'{"seq":\0\0\n')
    assert (mixed.fault, mixed.torn) == (None, 10)
    for data in (join([*parts[:5], b"\0" * 9, *parts[5:]]), TRACE + b"odd\n", b"\0" * 9 + b"\n"):
        found = scan(data)
        assert found.fault is not None
        assert found.torn == 0
    start = scan(parts[0][:-1] + b"\0}\n")
    assert start.fault is not None
    assert start.fault.line == 1


def test_an_append_that_was_begun_after_few_entries_is_cut_off_whole() -> None:
    made = Maker("few").start()
    start = made.data
    zeros = scan(lines(start)[0] + b"\n" + b"\0" * 9 + b"\n")
    assert (zeros.fault, zeros.torn) == (None, 10)
    first = scan(lines(start)[0][:-1] + b"\0}\n")
    assert first.fault is not None
    assert (first.fault.code, first.torn) == ("json.syntax", 0)
    made.entry("note", val=made.put("one"))
    whole = made.data
    made.put("two")
    pending = made.blobs.take()
    for cut in (len(pending), 30):
        found = scan(whole + pending[:cut])
        assert found.torn == (0 if cut == len(pending) else cut)
        assert found.whole(len(whole) + cut) == len(whole)
    assert scan(start).whole(len(start)) == len(start)
