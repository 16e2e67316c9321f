"""The baton step by step: who is woken with what, and what is said where something cannot be."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agentloom import agent, sync, tool
from agentloom.errors import Diverged, NoActiveRun, NotSupported
from agentloom.runtime.baton import Baton, _joined, _Strand, _strand, parallel
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.scope import entered
from tests.runtime.fakes import Bench, in_time, recorded

SPEC = CallSpec("tool", "find", {"q": 1})


@tool(effect="read")
def look(number: int) -> int:
    return number


def _none(call: Call) -> Any:
    return None


def test_the_threads_of_a_run_do_not_keep_its_process_alive() -> None:
    seen: list[tuple[bool, list[bool]]] = []

    @agent
    def runs() -> int:
        def branch() -> int:
            conductors = [
                thread.daemon for thread in threading.enumerate() if thread.name == "agentloom parallel"
            ]
            seen.append((threading.current_thread().daemon, conductors))
            return look(1)

        return sum(sync.parallel(branch, branch))

    recorded(runs)  # from a thread that is none itself
    assert not threading.current_thread().daemon
    assert seen == [(True, [True])] * 4  # live and replayed


def test_a_call_that_is_in_no_branch_is_said() -> None:
    bench = Bench()
    with pytest.raises(
        RuntimeError, match=r"tool find was called inside parallel\(\), but in none of its branches"
    ):
        Baton(bench.session).call(SPEC, bench.session.root, _none)


def _strand_of(bench: Bench, wake: Any) -> tuple[Baton, _Strand]:
    """A baton whose strand is woken by ``wake`` as soon as it waits."""
    baton, strand = Baton(bench.session), _Strand(None)
    baton._pass_on = wake  # type: ignore[method-assign]
    return baton, strand


def _call(baton: Baton, strand: _Strand, bench: Bench) -> object:
    token = _strand.set(strand)
    try:
        return baton.call(SPEC, bench.session.root, _none)
    finally:
        _strand.reset(token)


def test_a_strand_that_is_woken_without_an_outcome_is_said_unless_the_run_failed() -> None:
    bench = Bench()
    baton, strand = _strand_of(bench, lambda strand: None)
    with pytest.raises(RuntimeError, match="strand woken without a delivery for root/probe#1"):
        _call(baton, strand, bench)
    failed = Bench()

    def fails(strand: _Strand) -> None:
        failed.engine.failure = Diverged("here")

    baton, strand = _strand_of(failed, fails)
    with pytest.raises(Diverged, match="here"):
        _call(baton, strand, failed)


def test_a_strand_waits_for_its_own_call_and_gets_its_outcome_once() -> None:
    bench = Bench()
    waited: list[tuple[object, list[_Strand]]] = []
    baton: Baton

    def wake(strand: _Strand) -> None:
        waited.append((strand.waiting, list(baton._waiting)))
        call = strand.waiting
        assert call is not None
        assert call.sink is strand
        baton._wake(strand, bench.engine.deliver(Arrival("outcome", call, value=7)))

    baton, strand = _strand_of(bench, wake)
    assert _call(baton, strand, bench) == 7
    assert (strand.waiting, strand.delivery, baton._waiting) == (None, None, [])
    assert list(baton._ready) == [strand]
    [(call, waiting)] = waited
    assert isinstance(call, Call)
    assert waiting == [strand]


def test_an_arrival_wakes_whoever_waits_for_one() -> None:
    bench = Bench()
    baton = Baton(bench.session)
    arrived = bench.source.on_arrival
    assert arrived is not None
    polled: list[int | None] = []

    def poll(timer: int | None) -> Arrival | None:
        polled.append(timer)
        if len(polled) == 1:
            arrived()
            return None
        return Arrival("turn")

    bench.source.poll = poll  # type: ignore[method-assign]
    in_time(baton._deliver_one)
    assert not baton._arrived.is_set()
    in_time(baton._deliver_one)
    assert polled == [None, None]
    assert bench.kinds[-1] == "turn"


def _waiting(bench: Bench, count: int) -> tuple[Baton, list[_Strand]]:
    baton, strands = Baton(bench.session), [_Strand(None) for _ in range(count)]
    for strand in strands:
        call = bench.begin()
        call.sink, strand.waiting = strand, call
        baton._waiting.append(strand)
    return baton, strands


def test_the_strand_whose_call_was_answered_goes_on() -> None:
    bench = Bench()
    baton, [one, other] = _waiting(bench, 2)
    assert other.waiting is not None
    bench.source.coming.append(Arrival("outcome", other.waiting, value=5))
    assert baton._next() is other
    assert other.delivery is not None
    assert other.delivery.unwrap() == 5
    assert (baton._waiting, one.delivery) == ([one], None)


def test_a_cancellation_reaches_all_that_wait_in_the_order_of_their_calls() -> None:
    bench = Bench()
    baton, strands = _waiting(bench, 2)
    calls = [strand.waiting for strand in strands]
    bench.source.coming.append(Arrival("cancel"))
    assert [baton._next(), baton._next()] == strands
    for strand, call in zip(strands, calls, strict=True):
        delivery = strand.delivery
        assert delivery is not None
        assert (delivery.call, delivery.kind) == (call, "cancel")
        with pytest.raises(KeyboardInterrupt):
            delivery.unwrap()
    told = [detail for what, detail in bench.source.told if what == "cancel"]
    assert told == [(call.id, "cancelled") for call in calls if call is not None]
    assert bench.kinds[-3:] == ["cancel", "outcome", "outcome"]


def test_a_failure_wakes_all_that_wait_with_it_and_a_verdict_is_kept() -> None:
    for failure in (Diverged("here"), LookupError("a fault")):
        bench = Bench()
        baton, strands = _waiting(bench, 2)

        def poll(timer: int | None, failure: BaseException = failure) -> Arrival | None:
            raise failure

        bench.source.poll = poll  # type: ignore[method-assign]
        assert [baton._next(), baton._next()] == strands
        for strand in strands:
            delivery = strand.delivery
            assert delivery is not None
            assert (delivery.error, delivery.kind, delivery.call) == (failure, "outcome", None)
        assert bench.engine.failure is (failure if isinstance(failure, Diverged) else None)
        assert baton._waiting == []


def test_results_keep_the_order_of_arguments_and_an_interruption_goes_first() -> None:
    def ended(value: object = None, error: BaseException | None = None) -> _Strand:
        strand = _Strand(None)
        strand.value, strand.error = value, error
        return strand

    assert _joined([ended(2), ended(1), ended(None)]) == [2, 1, None]
    first, second, stop = ValueError("first"), ValueError("second"), SystemExit(3)
    with pytest.raises(ValueError, match="first"):
        _joined([ended(1), ended(error=first), ended(error=second)])
    with pytest.raises(SystemExit):
        _joined([ended(error=first), ended(error=stop)])


def test_what_cannot_run_side_by_side_is_said() -> None:
    bench = Bench()
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
        assert in_time(lambda: _in(bench)) == [1, 2]
        assert (bench.session.baton, bench.source.on_arrival) == (None, None)


def test_outside_a_run_it_is_named() -> None:
    with pytest.raises(NoActiveRun, match=r"parallel\(\) was called outside a run") as caught:
        parallel(lambda: 1)
    assert caught.value.fields == {"what": "parallel"}


def test_a_thread_that_is_no_strand_of_the_baton_there_is_has_one_of_its_own() -> None:
    bench = Bench()
    held: Any = object()
    bench.session.baton = held
    assert in_time(lambda: _in(bench)) == [1, 2]
    assert bench.session.baton is None


def _in(bench: Bench) -> object:
    with entered(bench.session.root):
        return parallel(lambda: 1, lambda: 2)
