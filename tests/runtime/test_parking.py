"""Where threads really wait: gates that are opened before or after, late or interrupted waits."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from agentloom.runtime import thread_locks
from agentloom.runtime.parking import Gate, Mutex
from tests.runtime.fakes import WAIT


def test_a_gate_lets_one_wait_through_whenever_it_was_opened() -> None:
    gate = Gate()
    assert gate.wait(0) == "late"
    gate.open()
    gate.open()  # opened twice, it is open once
    assert gate.wait() == "open"
    assert gate.wait(-1) == "late"
    thread = threading.Thread(target=gate.open)
    thread.start()
    assert gate.wait(WAIT) == "open"
    thread.join()


def test_a_press_of_ctrl_c_is_an_answer() -> None:
    gate = Gate()
    thread = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    thread.start()
    try:
        assert gate.wait(WAIT) == "pressed"
    finally:
        thread.join()
    gate.open()
    assert gate.wait(WAIT) == "open"


def test_a_mutex_is_let_go_whatever_happens_and_whatever_stands_in_for_locks() -> None:
    mutex = Mutex()
    thread_locks.install()
    try:
        for _ in range(2):
            with pytest.raises(LookupError), mutex:
                raise LookupError
    finally:
        thread_locks.uninstall()
