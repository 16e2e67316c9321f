"""The three verdicts apart, and what they count."""

from __future__ import annotations

import pytest

from agentloom.format.journal import check
from spec.vector_maker import entry_line, finished, head_of, lines, rechained, small

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
