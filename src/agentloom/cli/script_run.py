"""One script under a session, recorded or replayed: the same code for both; only what it is given differs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import types
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentloom.adapters import httpx_seam, sdks
from agentloom.adapters.exchanges import Exchange
from agentloom.cli.script_endings import ending
from agentloom.cli.script_exec import Ended, run_main
from agentloom.cli.script_exits import exits_told
from agentloom.cli.script_loops import inner_loops
from agentloom.cli.script_output import Capture, Place, StreamFacts
from agentloom.cli.script_tools import around
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.interrupts import held_back
from agentloom.runtime.refuse import Effects, Watch
from agentloom.runtime.scope import current, entered
from agentloom.runtime.session import Session
from agentloom.runtime.tool_use import ToolEffect, ToolUse
from agentloom.runtime.toolfind import Finder, tool_names

__all__ = ["Program", "ScriptRun", "ignored", "one_press"]

_monotonic = REAL_CLOCKS["monotonic"]
_SAME_PRESS = 0.3
"""Seconds within which a second interrupt is the same Ctrl-C, passed on by the parent process."""


@dataclass(frozen=True, slots=True)
class Program:
    """A script: its absolute path, compiled code, arguments, what it may see of its streams, tools' effects, and what
    it was called on the command line (``sys.argv[0]``)."""

    path: str
    code: types.CodeType
    argv: list[str]
    streams: dict[str, StreamFacts]
    effects: Mapping[str, ToolEffect] = field(default_factory=dict[str, ToolEffect])
    called: str | None = None


class ScriptRun:
    """Runs ``program``. ``show`` is where its streams are shown; ``emit_shown`` whether what a tool printed must be
    shown (on replay) or was shown by the tool itself. ``outer`` performs host work of async code, None on replay.
    ``coming``: what tools printed when recorded, at places of their own."""

    def __init__(
        self,
        session: Session,
        program: Program,
        effects: Effects,
        show: dict[str, Callable[[bytes], None]],
        *,
        outer: asyncio.AbstractEventLoop | None,
        strict: bool,
        coming: Iterable[tuple[str, Place, str]] = (),
    ) -> None:
        self.session = session
        self.program = program
        self.capture = Capture(program.streams, show, coming)
        self._show = show["stderr"]
        places = session.engine.places
        emit = self.capture.again if strict else self.capture.shown
        use = session.tools = session.tools or ToolUse()
        use.effects = {**program.effects, **use.effects}
        self.finder = Finder(places, use.effects, around(effects, emit, places))
        use.emit, use.used = emit, self.finder.used
        self._watch = Watch(effects, places, everything=strict)
        self._outer = outer
        self._strict = strict
        self._at_exit: Callable[[Ended], None] | None = None

    def at_exit(self, finish: Callable[[Ended], None]) -> None:
        """What ends the run where the program ends its process itself, with ``os._exit`` in its main thread."""
        self._at_exit = finish

    def execute(self) -> Ended:
        """Run to the end; then the output is in ``output``. Raises ``ControlFlow`` only."""
        _own_log(self._show)
        sdks.watch()
        httpx_seam.observe(self._offered)
        self.session.engine.take()
        with contextlib.ExitStack() as stack:
            stack.enter_context(inner_loops(self.session, self._outer))
            stack.enter_context(self.capture.installed())
            stack.enter_context(entered(self.session.root))
            # On replay Ctrl-C is for the parent, which ends this process: nothing can be lost with it. When recording
            # it is for the program alone: what ends the run after it is not to be interrupted.
            if self._strict:
                signal.signal(signal.SIGINT, ignored)
            elif signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is behind a shell's &
                signal.signal(signal.SIGINT, _interrupts(_for_the_run))
            stack.enter_context(held_back())
            stack.callback(signal.signal, signal.SIGINT, ignored)
            if not self._strict:
                stack.enter_context(ending(self._signalled, lambda: self.session.engine.writing))
            stack.enter_context(self._exits())
            stack.enter_context(exits_told())
            if self._strict:
                self._watch.arm()
            else:
                stack.enter_context(self._watch.armed())
            return run_main(self.program.code, self.program.path, self.program.argv, self.program.called)

    @contextlib.contextmanager
    def _exits(self) -> Generator[None]:
        """For the block, ``os._exit`` in the main thread ends the run before it ends the process."""
        before, owner = os._exit, os.getpid()

        def leave(status: int) -> None:
            here = threading.current_thread() is threading.main_thread() and os.getpid() == owner
            if here and self._at_exit is not None:
                self._at_exit(Ended(status & 0xFF))
            before(status)

        os._exit = leave  # type: ignore[assignment]
        try:
            yield
        finally:
            os._exit = before

    def _signalled(self, number: int) -> None:
        if self._at_exit is not None:
            self._at_exit(Ended(128 + number, KeyboardInterrupt()))

    def output(self, ended: Ended) -> dict[str, Any]:
        """What the run's end entry holds."""
        folder = os.path.dirname(self.program.path)
        err = self.capture.text("stderr")
        return {
            "stdout": self.capture.text("stdout"),
            # A traceback names absolute paths; the script's own folder may be another one tomorrow.
            "stderr": err.replace(folder + os.sep, "") if isinstance(err, str) else err,
            "exit": ended.exit,
        }

    def _offered(self, exchange: Exchange) -> None:
        if current() is not None and exchange.json is not None:
            self.finder.offer(tool_names(exchange.json))


class _ToTerminal(logging.Handler):
    def __init__(self, show: Callable[[bytes], None]) -> None:
        super().__init__(logging.WARNING)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(f"agentloom: {record.getMessage()}\n".encode())


def _own_log(show: Callable[[bytes], None]) -> None:
    """What agentloom itself has to say is shown, and is no part of the program's output."""
    log = logging.getLogger("agentloom")
    log.propagate = False
    log.handlers = [_ToTerminal(show)]


def ignored(_number: int, _frame: types.FrameType | None) -> None:
    """Handles a signal by doing nothing."""


def _for_the_run() -> bool:
    return False


@contextlib.contextmanager
def one_press(aside: Callable[[], bool] = _for_the_run) -> Generator[None]:
    """For the block, an interrupt that comes twice (from the terminal, and passed on by the parent) is one; asyncio's
    runner sees it too. ``aside`` says whether it was meant for something else, a question at the terminal."""
    runner, module = cast(Any, asyncio.Runner), cast(Any, signal)
    seen, default, handle = _interrupts(aside), signal.default_int_handler, runner._on_sigint

    def on_sigint(self: Any, number: int, frame: types.FrameType | None, main_task: object) -> None:
        try:
            seen(number, frame)
        except KeyboardInterrupt:
            handle(self, number, frame, main_task)

    signal.signal(signal.SIGINT, seen)
    # asyncio's runner puts its own handler only in the place of the default one.
    module.default_int_handler, runner._on_sigint = seen, on_sigint
    try:
        yield
    finally:
        module.default_int_handler, runner._on_sigint = default, handle
        signal.signal(signal.SIGINT, ignored)  # the run has ended; what follows is short


def _interrupts(aside: Callable[[], bool]) -> Callable[[int, types.FrameType | None], None]:
    last = [-_SAME_PRESS]

    def interrupt(_number: int, _frame: types.FrameType | None) -> None:
        now = _monotonic()
        again, last[0] = now - last[0] < _SAME_PRESS, now
        if not again and not aside():
            raise KeyboardInterrupt

    return interrupt
