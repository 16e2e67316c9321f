"""One pass over damaged bytes: it ends at the first fault, never raises, and agrees with the stand-alone checker."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentloom.format.journal import Journal, check
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
