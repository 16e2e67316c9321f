"""The guard of a run: its policy, its clock, its bytes."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from agentloom.errors import ValueRefused
from agentloom.runtime.guard import OFF, Guard, acting, chosen_policy, policy_facts
from agentloom.runtime.scope import Scope, entered
from tests.runtime.fakes import Scripted

PATH = "root/agent"


def session(guard: Guard, vt: int = 0, thread: int | None = None) -> Any:
    engine = SimpleNamespace(vt=vt, thread=thread, reads=0, writing=False)
    return SimpleNamespace(
        guard=guard, over=False, seed=None, engine=engine, source=Scripted(), stock=None, loop=None
    )


def test_the_first_policy_that_is_given_is_chosen() -> None:
    assert chosen_policy(None, "off", "strict") == "off"
    assert chosen_policy(None, None) == "strict"
    with pytest.raises(ValueRefused, match="one of strict, virtual, off, not 'maybe'"):
        chosen_policy("maybe")


def test_a_trace_from_before_the_guard_is_off() -> None:
    assert policy_facts({"durability": "process"}) == ("off", None)
    assert policy_facts({"guard": "virtual", "entropy": "0f" * 32}) == ("virtual", b"\x0f" * 32)
    facts = Guard("strict", bytes(range(32))).facts()
    assert policy_facts(facts) == ("strict", bytes(range(32)))


def test_reading_takes_a_microsecond_and_a_delivery_brings_the_clock_forward() -> None:
    guard = Guard("virtual", bytes(32))
    run = session(guard)
    assert [guard.elapsed(run) for _ in range(3)] == [1_000, 2_000, 3_000]
    run.engine.vt = 50_000
    assert [guard.elapsed(run), guard.elapsed(run)] == [50_000, 51_000]
    run.engine.vt = 50_500  # never back
    assert guard.elapsed(run) == 52_000
    assert guard.glance(run) == guard.glance(run) == 52_000


@pytest.mark.parametrize(("off", "acts"), [(0, True), (1, False)])
def test_the_guard_acts_in_the_thread_of_the_run_alone(off: int, acts: bool) -> None:
    run = session(Guard("virtual", bytes(32)), thread=threading.get_ident() + off)
    with entered(Scope(run, PATH)):
        assert (acting() is run) == acts


def test_bytes_follow_from_entropy_path_and_count() -> None:
    first, second, other = (
        Guard("virtual", b"a" * 32),
        Guard("virtual", b"a" * 32),
        Guard("virtual", b"b" * 32),
    )
    drawn = [first.draw(PATH, 16) for _ in range(2)]
    assert drawn == [second.draw(PATH, 16) for _ in range(2)]
    assert len({*drawn, first.draw("root/other", 16), other.draw(PATH, 16)}) == 4
    assert first.draw(PATH, 0) == b""
    assert first.fixed("node", 6) == second.fixed("node", 6) != other.fixed("node", 6)


def test_draws_follow_from_the_seed_where_there_is_one() -> None:
    one, two = Guard("virtual", b"a" * 32), Guard("virtual", b"b" * 32)
    assert one.generator(PATH, 7).random() == two.generator(PATH, 7).random()
    assert one.generator("root/x", None).random() != two.generator("root/x", None).random()
    assert one.generator(PATH, 7) is one.generator(PATH, 7)


def test_the_guard_acts_in_a_run_alone() -> None:
    assert acting() is None
    guard = Guard("virtual", bytes(32))
    run = session(guard)
    with entered(Scope(run, PATH)):
        assert acting() == run
        guard.suspended = 1
        assert not acting()
        guard.suspended, run.over = 0, True
        assert not acting()
    with entered(Scope(session(OFF), PATH)):
        assert acting() is None
