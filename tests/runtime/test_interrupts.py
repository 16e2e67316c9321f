"""Ctrl-C waits until the engine has finished what it is at, and comes at once everywhere else."""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agentloom.runtime import engine
from agentloom.runtime.interrupts import held_back
from tests.runtime.fakes import WAIT

press = functools.partial(os.kill, os.getpid(), signal.SIGINT)
ENGINE = engine.__file__


def code_in(file: str) -> Callable[[Callable[[], object], list[str]], None]:
    """A function of that file: it is pressed in its middle and goes on."""
    found: dict[str, Any] = {}
    exec(compile("def work(press, log):\n    press()\n    log.append('finished')\n", file, "exec"), found)
    made: Callable[[Callable[[], object], list[str]], None] = found["work"]
    return made


def pressed_in(file: str) -> list[str]:
    log: list[str] = []
    with pytest.raises(KeyboardInterrupt), held_back():  # noqa: PT012 - where in it the press comes is the question
        code_in(file)(press, log)
        threading.Event().wait(WAIT)  # the agent waits: here the press may come
        log.append("never")
    return log


def test_the_engine_finishes_first_and_then_the_press_comes() -> None:
    assert pressed_in(ENGINE) == ["finished"]


@pytest.mark.parametrize(
    "file", ["agent.py", ENGINE.replace("engine.py", "host.py"), ENGINE.replace("engine.py", "parking.py")]
)
def test_the_agents_code_and_host_work_are_interrupted_at_once(file: str) -> None:
    assert pressed_in(file) == []


def test_the_handler_before_is_back_afterwards_also_when_nested() -> None:
    before = signal.getsignal(signal.SIGINT)
    with held_back():
        inside = signal.getsignal(signal.SIGINT)
        with held_back():
            assert signal.getsignal(signal.SIGINT) is inside
        assert signal.getsignal(signal.SIGINT) is inside is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_programs_own_gets_the_press() -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    try:
        with held_back():
            press()
    finally:
        signal.signal(signal.SIGINT, before)
    assert got == [signal.SIGINT]


def test_where_ctrl_c_is_ignored_and_in_other_threads_nothing_is_changed() -> None:
    seen: list[object] = []

    def look() -> None:
        with held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        look()
    finally:
        signal.signal(signal.SIGINT, before)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_IGN, before]
