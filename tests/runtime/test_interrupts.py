"""Ctrl-C waits until the engine has finished what it is at, and comes at once everywhere else."""

from __future__ import annotations

# pyright: reportPrivateUsage=false
import ast
import functools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom.runtime import engine, interrupts
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


RUNTIME = Path(ENGINE).parent
WAITING = frozenset(
    ("acquire", "anext", "find_and_load", "import_module", "load", "original", "perform", "real", "recv", "run_forever",
     "run_until_complete", "select", "sleep", "wait")
)  # fmt: skip
"""Calls that may take long, by the last part of their name; ``real`` and ``original``: what something stands in for."""
NOT_LONG = {
    "agents": "awaits a driver, whose frames are further in",
    "answers": "awaits a stream, whose frames are further in",
    "baton": "waits at the gates of parking",
    "boundary": "awaits what the loop delivers",
    "guard_allow": "awaits the function that it decorates",
    "guard_clock": "the clocks of the system; of what waits, _sleep, the name says so",
    "guard_env": "asks for a value of sys.argv or the environment",
    "guard_ids": "the system's own identifiers; looks for a module that is part of Python",
    "guard_random": "the system's own random numbers",
    "guard_values": "lists; time.tzset",
    "interrupts": "in a thread of its own; at import",
    "live": "performs by functions of others, which have frames of their own",
    "recorder": "awaits a run",
    "stock_timers": "asyncio's own ways to set a timer and to read its clock, at once",
    "refuse": "starts what was let through, which does not wait",
}
"""Modules that look as if they waited, and do not for long."""


def waits(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Await):
            found.add("await")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            found |= {name} & WAITING
            if name == "join" and not node.args:
                found.add("join")
    return found


@pytest.mark.parametrize("module", sorted(RUNTIME.glob("*.py")), ids=lambda module: module.stem)
def test_every_module_of_the_runtime_is_decided(module: Path) -> None:
    at_once = str(module) in interrupts._AT_ONCE
    assert pressed_in(str(module)) == ([] if at_once else ["finished"])
    if not at_once and module.stem not in NOT_LONG:
        assert waits(module) == set(), (
            "in its frames Ctrl-C is held back: list it in interrupts._AT_ONCE, or here"
        )


def test_no_module_is_listed_that_is_gone() -> None:
    there = {str(module) for module in RUNTIME.glob("*.py")}
    assert interrupts._AT_ONCE <= there
    assert {str(RUNTIME / f"{name}.py") for name in NOT_LONG} <= there - interrupts._AT_ONCE


@pytest.mark.parametrize("room", ["format/journal.py", "store/appender.py"])
def test_a_trace_is_written_to_the_end_of_an_entry(room: str) -> None:
    assert pressed_in(str(RUNTIME.parent / room)) == ["finished"]


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
