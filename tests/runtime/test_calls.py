"""What crosses the boundary, as data."""

from __future__ import annotations

from agentloom.runtime.calls import Arrival, Call, CallSpec


def test_what_a_replay_hands_over_is_what_was_recorded() -> None:
    call = Call(CallSpec("tool", "find", {}), "root#1", "root", 1, "f.py:1 f", "k", {}, {}, {})
    whole = Arrival.of_record(
        "chunk", call, "closed", tree=[1], plain=True, vt=3, usage={"input": 1}, dur=4, offset=5
    )
    assert (whole.kind, whole.call, whole.status, whole.tree, whole.plain) == (
        "chunk",
        call,
        "closed",
        [1],
        True,
    )
    assert (whole.vt, whole.usage, whole.dur, whole.offset) == (3, {"input": 1}, 4, 5)
    assert (whole.recorded, whole.value, whole.error) == (True, None, None)
    bare = Arrival.of_record("timer", vt=7)
    assert (bare.call, bare.status, bare.tree, bare.plain, bare.usage) == (None, "ok", None, False, None)
    assert (bare.vt, bare.dur, bare.offset) == (7, None, 0)


def test_what_a_live_source_hands_over_is_still_to_be_written() -> None:
    error = ValueError("x")
    arrival = Arrival("outcome", value=[1], error=error, vt=3, dur=4, offset=5)
    assert (arrival.value, arrival.error, arrival.vt, arrival.dur, arrival.offset) == ([1], error, 3, 4, 5)
    assert (arrival.recorded, arrival.plain, arrival.tree, arrival.usage) == (False, False, None, None)
    bare = Arrival("timer")
    assert (bare.call, bare.status, bare.value, bare.error) == (None, "ok", None, None)
    assert (bare.vt, bare.dur, bare.offset) == (0, None, 0)


def test_the_place_of_a_call_is_looked_for_once() -> None:
    asked: list[int] = []

    def place() -> str:
        asked.append(1)
        return "f.py:1 f"

    call = Call(CallSpec("tool", "find", {}, profile="tool/1"), "root#1", "root", 1, place, "k", {}, {}, {})
    assert asked == []
    assert (call.src, call.src, len(asked)) == ("f.py:1 f", "f.py:1 f", 1)
    assert (call.type, call.name, call.profile, call.grown) == ("tool", "find", "tool/1", {})
    assert (call.parent, call.attempt, call.ended, call.chunks, call.usage) == (None, 1, False, 0, None)
