"""The baton step by step: who is woken with what, and what is said where something cannot be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom import agent, sync, tool
from agentloom.errors import Diverged, NoActiveRun, NotSupported, Stopped, StoreFailed
from agentloom.runtime import baton as baton_module
from agentloom.runtime.baton import Baton, parallel
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.deadlines import NEVER_NS
from agentloom.runtime.loop import Deadlock
from agentloom.runtime.scope import entered
from agentloom.runtime.strands import STRANDS, Strand
from tests.runtime.fakes import WAIT, Bench, recorded

SPEC = CallSpec("tool", "find", {"q": 1})


@tool(effect="read")
def look(number: int) -> int:
    return number


def _none(call: Call) -> Any:
    return None


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.engine.take()
    yield made
    if made.session.baton is not None:
        made.session.baton.end()
    assert made.session.baton is None
    assert made.source.on_arrival is None


def test_the_threads_of_a_run_do_not_keep_its_process_alive() -> None:
    seen: list[bool] = []

    @agent
    def runs() -> int:
        def branch() -> int:
            seen.append(threading.current_thread().daemon)
            return look(1)

        return sum(sync.parallel(branch, branch))

    recorded(runs)  # from a thread that is none itself
    assert not threading.current_thread().daemon
    assert seen == [True] * 4  # live and replayed


def test_a_call_in_a_thread_that_does_not_hold_the_baton_is_said(bench: Bench) -> None:
    baton = Baton(bench.session)
    with (
        baton.aside(),
        pytest.raises(RuntimeError, match="tool find was called in a thread that does not hold"),
    ):
        baton.call(SPEC, bench.session.root, _none)


def test_a_strand_gets_the_outcome_of_its_own_call_once(bench: Bench) -> None:
    baton = Baton(bench.session)
    assert baton.call(SPEC, bench.session.root, lambda call: 7) == 7
    assert (baton.main.call, baton.main.delivery) == (None, None)
    assert bench.kinds[-2:] == ["request", "outcome"]


def test_what_a_source_raises_is_raised_by_the_call_and_a_verdict_is_kept() -> None:
    for failure in (Diverged("here"), LookupError("a fault")):
        bench = Bench()
        bench.engine.take()

        def poll(timer: int | None, failure: BaseException = failure) -> Arrival | None:
            raise failure

        bench.source.poll = poll  # type: ignore[method-assign]
        baton = Baton(bench.session)
        with pytest.raises(type(failure)):
            baton.call(SPEC, bench.session.root, _none)
        assert bench.engine.failure is (failure if isinstance(failure, Diverged) else None)
        baton.end()


def test_an_arrival_takes_up_a_baton_that_lies_free(bench: Bench) -> None:
    """Nothing has arrived when the strand hands over; a thread in which something arrives gives it back."""
    baton = Baton(bench.session)
    free = threading.Event()
    polled: list[int | None] = []

    def poll(timer: int | None) -> Arrival | None:
        polled.append(timer)
        if len(polled) == 1:
            free.set()
            return None
        return Arrival("outcome", baton.main.call, value=5)

    def arrives() -> None:
        assert free.wait(WAIT)
        baton.arrived()

    thread = threading.Thread(target=arrives)
    thread.start()
    bench.source.poll = poll  # type: ignore[method-assign]
    assert baton.call(SPEC, bench.session.root, _none) == 5
    thread.join()
    assert polled == [None, None]


def test_a_wait_that_nobody_ends_is_a_deadlock_that_says_where(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baton_module, "PATIENCE", 0.05)
    baton = Baton(bench.session)
    with pytest.raises(Deadlock, match="every thread of the run waits.*MainThread in ") as raised:
        baton.block(baton.main, object())
    assert raised.value.hint is not None
    assert "look for a lock that is never released" in raised.value.hint


def test_a_wait_ends_at_its_deadline_and_a_wake_ends_it_once(bench: Bench) -> None:
    baton = Baton(bench.session)
    key = object()
    bench.source.coming.append(Arrival("timer", vt=2_000_000_000))
    assert not baton.block(baton.main, key, baton.deadline(1.5))
    assert bench.kinds[-1] == "timer"
    assert baton.next_timer() is None
    baton.wake(baton.main)  # it does not wait
    assert not baton._ready


def test_deadlines_are_nanoseconds_from_the_run_s_own_time_and_one_that_never_comes_is_no_timer(
    bench: Bench,
) -> None:
    baton = Baton(bench.session)
    bench.engine.vt = 3 * 10**15
    assert baton.deadline(0.5) == 3 * 10**15 + 500_000_000
    others = [Strand(baton, name) for name in "abc"]
    baton._blocked.update(dict.fromkeys(others))
    for deadlines, first in (
        ((None, None, None), None),
        ((NEVER_NS, None, None), None),
        ((NEVER_NS, NEVER_NS - 1, None), NEVER_NS - 1),
        ((7, None, 5), 5),
    ):
        for strand, deadline in zip(others, deadlines, strict=True):
            strand.deadline = deadline
        assert baton.next_timer() == first
    for strand in others:
        del baton._blocked[strand]


def test_strands_of_a_run_that_is_given_up_go_on_as_threads_and_their_waits_end_with_why(
    bench: Bench,
) -> None:
    baton = Baton(bench.session)
    for failure, kind in (
        (StoreFailed("full", hint="make room"), Stopped),
        (Diverged("another call"), Diverged),
        (None, type(None)),
    ):
        strand = Strand(baton, "one")
        baton.over = False
        baton._strands[strand] = None
        baton._abandon(failure)
        assert type(strand.error) is kind
        assert strand.free
        assert baton.over
        assert not baton._strands
        assert baton.owner is baton.main
    mine = Strand(baton, "two")
    mine.error = known = ValueError("its own")
    baton._strands[mine] = None
    baton._abandon(Diverged("another call"))
    assert mine.error is known


def test_an_interruption_of_the_agents_call_cancels_it_and_wakes_it_with_the_interruption(
    bench: Bench,
) -> None:
    baton = Baton(bench.session)
    main = baton.main
    main.call = call = bench.engine.begin(SPEC, bench.session.root)
    baton._calls[main] = None
    baton._cancelling = True
    baton._cancel()
    assert not baton._cancelling
    assert call.ended
    assert main.delivery is not None
    assert (main.delivery.call, main.delivery.kind) == (call, "cancel")
    assert isinstance(main.delivery.error, KeyboardInterrupt)
    assert bench.kinds[-1] == "outcome"
    baton._ready.clear()


def test_the_agents_own_thread_is_its_strand_until_the_end_and_then_what_it_was() -> None:
    outer, inner = Bench(), Bench()
    for bench in (outer, inner):
        bench.engine.take()
    around, within = Baton(outer.session), Baton(inner.session)
    ident = threading.get_ident()
    assert STRANDS[ident] is within.main
    within.end()
    assert STRANDS[ident] is around.main
    around.end()
    assert ident not in STRANDS


def test_an_interruption_goes_before_errors_and_results_keep_the_order_of_arguments(bench: Bench) -> None:
    def fails(error: BaseException) -> Any:
        def branch() -> None:
            raise error

        return branch

    def ends(*branches: Any) -> Any:
        with entered(bench.session.root):
            return parallel(*branches)

    assert ends(lambda: 2, lambda: 1, lambda: None) == [2, 1, None]
    with pytest.raises(ValueError, match="first"):
        ends(lambda: 1, fails(ValueError("first")), fails(ValueError("second")))
    with pytest.raises(SystemExit):
        ends(fails(ValueError("first")), fails(SystemExit(3)))


def test_what_cannot_run_side_by_side_is_said(bench: Bench) -> None:
    with entered(bench.session.root):
        assert parallel() == []
        with pytest.raises(TypeError, match=r"parallel\(\) takes functions; argument 2 is"):
            parallel(lambda: 1, 5)  # type: ignore[arg-type]
        loop: Any = object()
        bench.session.loop = loop
        with pytest.raises(NotSupported) as caught:
            parallel(lambda: 1)
        assert "agentloom.sync.parallel() was called in an async agent" in str(caught.value)
        assert caught.value.hint == "await agentloom.parallel(...) there"
        bench.session.loop = None
        assert parallel(lambda: 1, lambda: 2) == [1, 2]


def test_outside_a_run_it_is_named() -> None:
    with pytest.raises(NoActiveRun, match=r"parallel\(\) was called outside a run") as caught:
        parallel(lambda: 1)
    assert caught.value.fields == {"what": "parallel"}


def test_a_strand_that_was_let_go_is_joined_as_any_thread(bench: Bench) -> None:
    baton = Baton(bench.session)
    strand = Strand(baton, "loop", daemon=True)
    seen: list[bool] = []

    def work() -> None:
        baton.let_go(strand)
        seen.append(threading.get_ident() in STRANDS)

    baton.launch(strand, threading.Thread(target=baton.life, args=(strand, work), daemon=True))
    assert baton.block(baton.main, strand)
    assert (strand.done, strand.error, seen, baton.live) == (True, None, [False], 0)
