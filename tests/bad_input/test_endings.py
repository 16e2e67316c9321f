"""Whatever a tool raises, whatever an agent returns: recorded, delivered, and replayed as it was. And nothing hangs."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace, agent, sync, tool
from agentloom.errors import StoreFailed, ValueRefused


class Odd(BaseException):
    pass


RAISED: dict[str, BaseException] = {
    "KeyboardInterrupt": KeyboardInterrupt("x"),
    "SystemExit": SystemExit(3),
    "GeneratorExit": GeneratorExit("g"),
    "BaseException": Odd("b"),
    "StopIteration": StopIteration(5),
    "StopAsyncIteration": StopAsyncIteration(6),
    "CancelledError": asyncio.CancelledError("c"),
    "group": BaseExceptionGroup("g", [KeyboardInterrupt(1), ExceptionGroup("h", [KeyError("k")])]),
}


@tool
def fail(name: str) -> None:
    raise RAISED[name]


@tool
async def fail_later(name: str) -> None:
    raise RAISED[name]


def seen(error: BaseException) -> str:
    return f"{type(error).__name__} {error!r} {error.args}"


@agent
def in_sync(name: str) -> str:
    try:
        fail(name)
    except BaseException as error:  # noqa: BLE001 - what is tested
        return seen(error)
    return "nothing"


@agent
async def awaited(name: str) -> str:
    try:
        await fail_later(name)
    except BaseException as error:  # noqa: BLE001 - what is tested
        return seen(error)
    return "nothing"


@agent
async def sync_tool_in_async(name: str) -> str:
    try:
        fail(name)
    except BaseException as error:  # noqa: BLE001 - what is tested
        return seen(error)
    return "nothing"


@agent
def in_parallel(name: str) -> str:
    try:
        sync.parallel(lambda: fail(name), sync.now)
    except BaseException as error:  # noqa: BLE001 - what is tested
        return seen(error)
    return "nothing"


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """The result of ``work`` in a thread of its own, or a failed test: nothing here may hang."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it hangs, or raised in its thread"
    return found[0]


@pytest.mark.parametrize("name", list(RAISED))
@pytest.mark.parametrize(
    "program", [in_sync, awaited, sync_tool_in_async, in_parallel], ids=lambda p: p.function.name
)
def test_what_a_tool_raises_is_its_outcome(program: Any, name: str, tmp_path: Path) -> None:
    def both() -> tuple[Trace, str]:
        trace = program.run(name, store=tmp_path)
        return trace, trace.replay(check=False).verdict

    trace, verdict = within(30, both)
    expected = "RuntimeError" if name == "StopIteration" and program is awaited else name
    if name == "BaseException":
        expected = "Odd"
    if name != "group":
        assert trace.output.startswith(expected)
    assert verdict == "identical"
    assert trace.verify().complete


@agent
def cannot_be_kept() -> object:
    return object()


@agent
async def a_generator() -> object:
    return (number for number in range(3))


@pytest.mark.parametrize("program", [cannot_be_kept, a_generator], ids=lambda p: p.function.name)
def test_a_result_that_cannot_be_kept_is_the_failure_of_the_run(program: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueRefused) as caught:
        program.run(store=tmp_path)
    assert "agentloom show" in "".join(caught.value.__notes__)
    trace = Trace.open("last", tmp_path)
    assert trace.status == "failed"
    assert trace.verify().complete
    assert trace.replay(agent=program).verdict == "identical"


# -- interrupts ------------------------------------------------------------------------------------------------------


@tool
def look(x: int) -> int:
    return x


@agent
def stubborn() -> int:
    """Goes on after every interrupt, as a program should not."""
    for number in range(60):
        try:
            look(number)
            sync.now()
        except KeyboardInterrupt:
            continue
    return 1


class _Presses:
    """The handler of SIGINT of one test: raises within a round alone, once, and counts what arrives, however late.

    Nothing may reach the test runner: a press that is held back comes from a thread of its own, on a busy machine at
    any time.
    """

    def __init__(self) -> None:
        self.arrived = 0
        self.armed = False

    def __call__(self, number: int, frame: object) -> None:
        self.arrived += 1
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def round(self, store: Path, after: float) -> None:
        """A run with a press ``after`` so many seconds; ends when that press has arrived."""
        expected = self.arrived + 1
        pressed = threading.Thread(target=_press, args=(threading.main_thread().ident or 0, after))
        try:
            self.armed = True
            pressed.start()
            stubborn.run(store=store)
            self.armed = False
        except KeyboardInterrupt:
            pass
        except StoreFailed as error:
            self.armed = False
            assert "cut off in the middle" in str(error)  # noqa: PT017 - rare, and a right answer
        pressed.join()
        until = time.monotonic() + 30
        while self.arrived < expected:
            assert time.monotonic() < until, "a press was lost"
            time.sleep(0.0005)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_ctrl_c_in_the_middle_of_anything_leaves_a_trace_that_holds(tmp_path: Path) -> None:
    presses = _Presses()
    before = signal.signal(signal.SIGINT, presses)
    try:
        for count in range(80):
            presses.round(tmp_path / str(count), 0.0005 + count * 0.00015)
        handed_back = signal.getsignal(signal.SIGINT) is presses
    finally:
        signal.signal(signal.SIGINT, before)
    unfinished = 0
    for path in sorted(tmp_path.glob("*/runs/*.loom")):
        if path.stat().st_size:
            verdict = Trace.load(path).verify()
            assert verdict.consistent, (path, verdict)
            unfinished += not verdict.complete
    gc.collect()  # here, and not in another test
    assert handed_back
    assert presses.arrived == 80
    assert unfinished <= 8


def _press(thread: int, after: float) -> None:
    time.sleep(after)
    signal.pthread_kill(thread, signal.SIGINT)


# A signal may come between the making of a writer and the block that closes it: then its destructor does, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_exception_out_of_a_signal_handler_never_breaks_the_chain(tmp_path: Path) -> None:
    def alarm(*_: object) -> None:
        raise TimeoutError("alarm")

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for count in range(60):
            store = tmp_path / str(count)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0008 + count * 0.0001)
                stubborn.run(store=store)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except (TimeoutError, StoreFailed):
                pass
            for path in (store / "runs").glob("*.loom") if store.exists() else ():
                if path.stat().st_size:
                    assert Trace.load(path).verify().consistent, count
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    gc.collect()  # here, and not in another test
    assert stubborn.run(store=tmp_path / "after").output == 1  # no run is left current
