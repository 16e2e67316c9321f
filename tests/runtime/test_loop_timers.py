"""Timers: virtual time, order, cancellation, deadlines in whole nanoseconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.runtime.loop import InnerLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

MS = 1_000_000


@pytest.fixture
def loop() -> Iterator[InnerLoop]:
    made = InnerLoop()
    yield made
    made.close()


def test_timers_fire_one_deadline_at_a_time_and_never_by_themselves(loop: InnerLoop) -> None:
    seen: list[str] = []
    loop.call_later(0.002, seen.append, "second")
    loop.call_later(0.001, seen.append, "first")
    loop.pump()
    assert seen == []
    assert loop.next_timer() == 1 * MS
    loop.fire_timer(1 * MS)
    assert seen == []  # ready, not run
    loop.pump()
    assert seen == ["first"]
    assert loop.next_timer() == 2 * MS


def test_a_late_delivery_moves_time_past_the_deadline(loop: InnerLoop) -> None:
    loop.call_later(0.001, lambda: None)
    loop.fire_timer(5 * MS)
    assert (loop.vt, loop.time()) == (5 * MS, 0.005)


def test_an_early_delivery_moves_time_to_the_deadline(loop: InnerLoop) -> None:
    loop.call_later(0.001, lambda: None)
    loop.fire_timer(0)
    assert loop.vt == 1 * MS


def test_timers_of_one_deadline_become_ready_together_in_creation_order(loop: InnerLoop) -> None:
    seen: list[int] = []
    handles = [loop.call_at(1.0, seen.append, i) for i in range(20)]
    handles[3].cancel()
    loop.call_at(1.000000001, seen.append, 99)
    loop.fire_timer(0)
    loop.pump()
    assert seen == [i for i in range(20) if i != 3]


def test_firing_without_a_live_timer_is_an_error(loop: InnerLoop) -> None:
    loop.call_later(1, lambda: None).cancel()
    with pytest.raises(RuntimeError, match="no live timer"):
        loop.fire_timer(0)


def test_a_cancelled_timer_is_no_timer(loop: InnerLoop) -> None:
    loop.call_later(0.001, lambda: None).cancel()
    loop.call_later(0.002, lambda: None)
    assert loop.next_timer() == 2 * MS
    loop.call_later(0.001, lambda: None).cancel()
    assert loop.next_timer() == 2 * MS


def test_cancelled_timers_do_not_pile_up(loop: InnerLoop) -> None:
    live = [loop.call_later(10 + i, lambda: None) for i in range(10)]
    for i in range(10_000):
        loop.call_later(1000 + i, lambda: None).cancel()
    assert len(loop._timers) < 200
    assert [loop.next_timer()] == [10_000 * MS]
    assert not any(handle.cancelled() for handle in live)


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=200))
def test_any_mix_of_timers_and_cancellations_fires_the_live_ones_in_order(
    plan: list[tuple[int, bool]],
) -> None:
    loop = InnerLoop()
    seen: list[tuple[int, int]] = []
    handles = [loop.call_later(ms / 1000, seen.append, (ms, i)) for i, (ms, _) in enumerate(plan)]
    for handle, (_, cancelled) in zip(handles, plan, strict=True):
        if cancelled:
            handle.cancel()
    while loop.next_timer() is not None:
        loop.fire_timer(0)
        loop.pump()
    loop.close()
    assert seen == sorted((ms, i) for i, (ms, cancelled) in enumerate(plan) if not cancelled)


@given(st.integers(0, 10**17), st.floats(0, 1e6))
def test_when_a_timer_fires_its_time_has_come(start_ns: int, delay: float) -> None:
    """Otherwise ``while loop.time() < deadline: await sleep(deadline - loop.time())`` would never end."""
    loop = InnerLoop(start_ns=start_ns)
    handle = loop.call_later(delay, lambda: None)
    loop.fire_timer(0)
    assert loop.time() >= handle.when()
    loop.close()


def test_deadlines_out_of_reach_never_fire(loop: InnerLoop) -> None:
    loop.call_later(math.inf, lambda: None)
    loop.call_later(1e12, lambda: None)
    assert loop.next_timer() is None
    loop.call_later(3, lambda: None)
    assert loop.next_timer() == 3000 * MS


def test_nan_and_none_are_refused(loop: InnerLoop) -> None:
    with pytest.raises(ValueError, match="NaN"):
        loop.call_at(math.nan, lambda: None)
    with pytest.raises(TypeError):
        loop.call_at(None, lambda: None)  # type: ignore[arg-type]


def test_time_only_moves_forward(loop: InnerLoop) -> None:
    loop.advance(5)
    loop.advance(3)
    assert loop.vt == 5


def test_virtual_time_starts_where_it_is_told() -> None:
    loop = InnerLoop(start_ns=1_500_000_000)
    assert loop.time() == 1.5
    loop.call_later(0.25, lambda: None)
    assert loop.next_timer() == 1_750_000_000
    loop.close()
