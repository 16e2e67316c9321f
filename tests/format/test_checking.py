"""The three verdicts apart, and what they count."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.format.journal import check
from agentloom.format.scanning import scan
from spec.vector_maker import Maker, entry_line, finished, head_of, lines, rechained, small
from spec.vector_traces import erase

TRACE = finished()


def test_without_a_head_unaltered_is_unknown() -> None:
    verdict = check(TRACE)
    assert (verdict.consistent, verdict.unaltered, verdict.complete, verdict.ok) == (True, None, True, True)
    assert (verdict.entries, verdict.blobs, verdict.calls) == (8, 12, 3)
    assert (verdict.code, verdict.line, verdict.offset, verdict.message) == (None, None, None, "")


def test_the_head_of_any_entry_vouches_for_what_stands_before() -> None:
    for number in (1, entry_line(TRACE, "outcome"), len(lines(TRACE))):
        verdict = check(TRACE, head=head_of(TRACE, number))
        assert verdict.unaltered is True
        assert verdict.head_seq is not None
    assert verdict.head_seq == 7
    assert verdict.head == head_of(TRACE)


def test_a_forged_chain_is_consistent_and_not_unaltered() -> None:
    forged = rechained(TRACE, entry_line(TRACE, "outcome"), lambda entry: entry.update(vt=1))
    assert check(forged).ok
    verdict = check(forged, head=head_of(TRACE))
    assert (verdict.consistent, verdict.unaltered, verdict.complete) == (True, False, True)
    assert verdict.code == "head.mismatch"
    assert not verdict.ok


def test_a_broken_file_is_never_unaltered() -> None:
    verdict = check(TRACE.replace(b'"order":812', b'"order":813', 1), head=head_of(TRACE))
    assert (verdict.consistent, verdict.unaltered, verdict.complete) == (False, False, False)


def test_a_run_that_goes_on_is_consistent() -> None:
    data = small().data
    verdict = check(data, head=head_of(data))
    assert (verdict.consistent, verdict.unaltered, verdict.complete) == (True, True, False)
    assert verdict.code == "end.missing"


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{", b"\x00" * 100, b'{"seq":', b'{"seq":0}\n', b'{"seq":"0"}\n[]\n']
)
def test_bad_bytes_get_a_verdict(data: bytes) -> None:
    verdict = check(data)
    assert not verdict.consistent
    assert verdict.line == 1


def test_the_head_of_an_entry_names_it() -> None:
    for number, line in enumerate(n for n, text in enumerate(lines(TRACE), 1) if text.startswith(b'{"seq"')):
        verdict = check(TRACE, head=head_of(TRACE, line))
        assert (verdict.head_seq, verdict.unaltered, verdict.code, verdict.ok) == (number, True, None, True)


def test_another_head_is_named_at_the_last_entry() -> None:
    verdict = check(TRACE, head="0" * 64)
    last = entry_line(TRACE, "end")
    assert (verdict.head_seq, verdict.unaltered, verdict.consistent, verdict.complete) == (
        None,
        False,
        True,
        True,
    )
    assert (verdict.code, verdict.line) == ("head.mismatch", last)
    assert verdict.offset == len(b"".join(line + b"\n" for line in lines(TRACE)[: last - 1]))
    assert verdict.message == "no entry has the head that was kept elsewhere"
    broken = check(TRACE[:-100] + b"}" + TRACE[-100:], head=head_of(TRACE, 1))
    assert (broken.consistent, broken.unaltered, broken.head_seq, broken.torn) == (False, False, 0, 0)
    assert broken.code != "head.mismatch"


def test_what_is_incomplete_is_named_at_its_entry() -> None:
    data = small().data
    verdict = check(data + b'{"seq":')
    last = [n for n, line in enumerate(lines(data), 1) if line.startswith(b'{"seq"')][-1]
    offset = len(b"".join(line + b"\n" for line in lines(data)[: last - 1]))
    assert (verdict.code, verdict.line, verdict.offset) == ("tail.torn", last, offset)
    assert verdict.message == "7 bytes of an unfinished append after the last entry"
    assert verdict.torn == 7
    verdict = check(data)
    assert (verdict.code, verdict.line, verdict.offset) == ("end.missing", last, offset)
    assert verdict.message.startswith("no end entry")
    gap = check(small().entry("gap", why="x").entry("gap", why="y").end().data)
    assert (gap.code, gap.line, gap.complete) == ("gap.present", last + 1, False)
    assert gap.message.startswith("something was not recorded here (")


def test_a_missing_payload_is_named_where_it_is_missed_first() -> None:
    made = Maker("missing").start()
    inner = made.put({"big": "x" * 2000})
    part = made.put("x" * 2000)
    made.entry("note", val=inner)
    first = len(lines(made.data))
    made.entry("note", val=inner).entry("note", val=made.put({"other": "y" * 2000})).end()
    whole = check(made.data)
    assert whole.ok
    for gone, line in ((inner, first - 1), (part, None)):
        kept = [text for text in lines(made.data) if not text.startswith(b'{"blob":"%b"' % gone.encode())]
        data = b"".join(text + b"\n" for text in kept)
        verdict = check(data)
        assert (verdict.consistent, verdict.complete, verdict.code) == (True, False, "blob.missing")
        assert verdict.missing == [gone]
        assert verdict.message == f"payload {gone[:12]} is not in the file"
        last = [n for n, text in enumerate(kept, 1) if text.startswith(b'{"seq"')][-1]
        assert verdict.line == (line or last)
        assert verdict.offset == len(b"".join(text + b"\n" for text in kept[: (line or last) - 1]))
        assert verdict.unreferenced == ([part] if gone == inner else [])
    two: list[Any] = sorted((inner, made.journal.head))
    noted = Maker("two").start().entry("note", x=two[::-1]).end()
    verdict = check(noted.data)
    assert sorted(verdict.missing) == two
    assert verdict.message == f"payload {two[0][:12]} is not in the file"


def test_blobs_stand_before_the_first_entry_that_reaches_them() -> None:
    made = Maker("places").start()
    made.entry("note", val=made.put("a" * 10))
    for number in range(4):
        made.put(f"{number}" * 10)
    made.entry("note", x=[made.put(f"{number}" * 10) for number in range(4)]).end()
    parts = lines(made.data)
    at = next(n for n, line in enumerate(parts) if b'"1111111111"' in line)
    assert check(made.data).ok
    swapped = [*parts[: at - 1], parts[at], parts[at - 1], *parts[at + 1 :]]
    if not parts[at - 1].startswith(b'{"blob"'):
        swapped = [*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]
    verdict = check(b"".join(line + b"\n" for line in swapped))
    assert verdict.code == "blob.order"
    blob = swapped[(verdict.line or 0) - 1][9:73].decode()
    assert verdict.message == f"blob {blob[:12]} is not in its place by id"
    moved = [*parts[:1], parts[at], *(line for n, line in enumerate(parts) if n not in (0, at))]
    verdict = check(b"".join(line + b"\n" for line in moved))
    assert (verdict.code, verdict.line) == ("blob.place", 2)
    assert verdict.message == f"blob {parts[at][9:21].decode()} belongs to entry 2"
    stray = [*parts[:-1], b'{"blob"' + parts[at][7:], parts[-1]]
    assert check(b"".join(line + b"\n" for line in stray)).code == "blob.duplicate"


def test_after_an_erasure_only_the_order_within_a_place_is_left_to_check() -> None:
    data = erase()
    verdict = check(data)
    assert verdict.ok
    assert len(verdict.erased) > 1
    parts = lines(data)
    blobs = [n for n, line in enumerate(parts) if line.startswith(b'{"blob"')]
    pair = next(n for n in blobs if n + 1 in blobs)
    swapped = [*parts[:pair], parts[pair + 1], parts[pair], *parts[pair + 2 :]]
    assert check(b"".join(line + b"\n" for line in swapped)).code == "blob.order"


def test_what_stands_before_an_erased_owner_stays_in_its_place() -> None:
    """Its first owner is gone; another names it much later."""
    made = Maker("owner").start().entry("note")
    text = "x" * 2000
    owner = made.put({"text": text})
    made.entry("note", val=owner).entry("note").entry("note", val=made.put({"again": text, "more": 1}))
    nonce = scan(made.data).entries[0]["nonce"]
    made.entry("erase", blobs=[owner, nonce], val=made.put("erased")).end()
    gone = (f'{{"blob":"{owner}'.encode(), f'{{"blob":"{nonce}'.encode())
    data = b"".join(line + b"\n" for line in lines(made.data) if not line.startswith(gone))
    verdict = check(data)
    assert verdict.consistent, verdict.message
    assert verdict.ok
    assert sorted(verdict.erased) == sorted([owner, nonce])
    assert verdict.missing == []


def test_a_blob_that_nothing_names_hides_no_other_fault() -> None:
    made = Maker("stray").start()
    made.entry("note", val=made.put("a" * 10))
    stray = made.put("never named")
    made.entry("note", x=[made.put(letter * 10) for letter in "bcdef"]).end()
    verdict = check(made.data)
    assert verdict.unreferenced == [stray]
    assert verdict.consistent
    parts = lines(made.data)
    blobs = [n for n, line in enumerate(parts) if line.startswith(b'{"blob"') and b'"never' not in line]
    first, second = blobs[-3:-1]  # the last one is that of the end entry
    parts[first], parts[second] = parts[second], parts[first]
    assert check(b"".join(line + b"\n" for line in parts)).code == "blob.order"


def test_what_an_entry_names_again_hides_nothing_that_it_names() -> None:
    made = Maker("again").start()
    old: Any = made.put("old")
    made.entry("note", val=old)
    made.entry("note", x=[made.put("new"), old]).end()
    verdict = check(made.data)
    assert (verdict.ok, verdict.unreferenced) == (True, [])
