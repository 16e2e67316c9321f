"""Clocks of ``time``: virtual in a run, untouched outside."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap
import time
import typing

import pytest

from agentloom import agent
from agentloom.runtime.guard_clock import REAL_TIME, holds
from agentloom.runtime.guard_install import install
from agentloom.store import MemoryStore

NAMES = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


@pytest.fixture(autouse=True)
def in_place() -> None:
    install()


@pytest.mark.parametrize("name", NAMES)
def test_outside_a_run_clocks_are_the_real_ones(name: str) -> None:
    before, read, after = getattr(REAL_TIME, name)(), getattr(time, name)(), getattr(REAL_TIME, name)()
    assert before <= read <= after
    assert REAL_TIME.time_ns() - time.time_ns() < 10**9


def test_stand_ins_look_like_what_they_stand_for() -> None:
    assert time.time.__name__ == "time"
    assert time.time.__doc__ == REAL_TIME.time.__doc__
    for copied in (pickle.loads(pickle.dumps(time.time)), copy.deepcopy(time.time)):
        assert abs(copied() - REAL_TIME.time()) < 60

    class Timed:
        clock: typing.Any = time.monotonic  # a built-in function is not bound to the instances of a class

    assert Timed().clock() > 0


def test_a_clock_that_was_put_back_is_replaced_again() -> None:
    stands = time.monotonic
    time.monotonic = REAL_TIME.monotonic
    holds()
    assert time.monotonic is stands
    time.monotonic = foreign = typing.cast("typing.Any", lambda: 1.0)
    try:
        holds()
        assert time.monotonic is foreign
    finally:
        time.monotonic = stands


def test_who_has_another_clock_at_the_first_run_keeps_it() -> None:
    code = """
        import time
        real = time.time
        from agentloom import agent
        @agent
        def shown(): return time.time()
        time.time = lambda: 7.0
        assert shown.run(store=":memory:").output == 7.0
        time.time = real
        trace = shown.run(store=":memory:")
        assert trace.output > 10**9 and trace.replay().verdict == "identical" and time.time() > 10**9
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


@agent(guard="virtual")
def clocks() -> list[object]:
    start, wall = time.perf_counter(), time.time()
    waited = 0
    while time.perf_counter() - start < 0.001:  # a busy wait ends
        waited += 1
    rate = waited / (time.time() - wall)
    return [
        start,
        wall,
        waited,
        rate,
        time.time_ns(),
        time.ctime(),
        time.strftime("%Y %Z"),
        list(time.gmtime()),
    ]


@pytest.mark.usefixtures("no_ticks")
def test_in_a_run_clocks_show_its_own_time() -> None:
    trace = clocks.run(store=MemoryStore())
    assert typing.cast("list[int]", trace.output)[2] in range(990, 1010)  # a microsecond each
    assert trace.replay().verdict == "identical"


@agent(guard="strict")
def waits() -> float:
    before = time.monotonic()
    time.sleep(0.02)
    time.sleep(0)
    return time.monotonic() - before


def test_sleep_is_a_host_call_that_a_replay_does_not_wait_for() -> None:
    trace = waits.run(store=MemoryStore())
    assert [call.kind for call in trace.calls] == ["sleep"]
    assert typing.cast(float, trace.output) >= 0.02
    began = time.perf_counter()
    assert trace.replay().verdict == "identical"
    assert time.perf_counter() - began < 5


@agent(guard="strict")
def sleeps(seconds: object) -> None:
    time.sleep(typing.cast(float, seconds))


@pytest.mark.parametrize(
    ("seconds", "error"), [(-1, ValueError), ("1", TypeError), (float("nan"), ValueError)]
)
def test_what_sleep_does_not_take_is_an_error_as_ever(seconds: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        sleeps.run(seconds, store=MemoryStore())
