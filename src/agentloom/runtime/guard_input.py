"""``input()`` inside a run is a question to a person, ``ask``: recorded with its answer, and served on replay.

On a terminal it is asked at once. Standard input itself is read outside of runs; inside one it holds nothing that a
replay could be given.
"""

# Whose doing a read is, is in the frames above it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.effects import Found
from agentloom.runtime.guard_effects import of_run
from agentloom.runtime.outside import Outside
from agentloom.runtime.refuse import see
from agentloom.runtime.scope import current
from agentloom.runtime.work import under_way

__all__ = ["ask_with", "replace_input", "terminal_line", "terminal_reader"]

_input = builtins.input
_own_terminal: Callable[[], str] | None = None
_recorded_stdin = False


def ask_with(read_line: Callable[[], str] | None, *, recorded: bool = False) -> None:
    """Standard input is somebody else's from now on: ``read_line`` reads a line from the terminal (None: as ever);
    ``recorded`` says that what is read from it is recorded anyway, so that ``input()`` is left alone."""
    global _own_terminal, _recorded_stdin
    _own_terminal, _recorded_stdin = read_line, recorded


def replace_input() -> None:
    """From now on ``input()`` inside a guarded run is ``ask``, and standard input goes by the run's guard."""
    if builtins.input is _input:
        cast(Any, builtins).input = _asked
    if sys.stdin is not None and not isinstance(sys.stdin, _Stdin):  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdin = cast(Any, _Stdin(sys.stdin))


@functools.wraps(_input)
def _asked(prompt: object = "", /) -> str:
    scope = current()
    if scope is None or not scope.session.guard.virtual or under_way() is not None or _recorded_stdin:
        return _input(prompt)
    question = str(prompt)
    if question:
        sys.stdout.write(question)
        sys.stdout.flush()
    spec = CallSpec("ask", "input", {"question": question})
    engine = scope.session.engine
    if engine.suspends and (terminal_reader() is None or str(engine.calls + 1) in engine.asked):
        # Nobody is here to ask, or somebody elsewhere was asked before this process went on with the run.
        spec.outside = Outside("answer", facts={"question": question}, read=str)
    return cast(str, call_inline(spec, _answer))


def terminal_reader() -> Callable[[], str] | None:
    """What reads a line from who is at the terminal of this process; None: nobody is."""
    if _own_terminal is not None:
        return _own_terminal
    stream = _real(sys.stdin)
    return None if stream is None or stream.closed or not stream.isatty() else _input


def _answer(call: Call) -> str:
    read = terminal_reader()
    if read is None:
        raise NotSupported(
            f"input({call.tree['question']!r}) was called in a run, and there is no terminal to ask",
            hint="run it on a terminal, or give the answer to the agent as its input",
        )
    return read()


def terminal_line(descriptor: int) -> str:
    """One line from the terminal behind ``descriptor``, without its end. ``EOFError`` at the end of input."""
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(descriptor, 65536)
        if not part:
            break
        data += part
    if not data:
        raise EOFError("EOF when reading a line")
    return data.decode(errors="surrogateescape").removesuffix("\n")


def _real(stream: Any) -> Any:
    return stream.stream if isinstance(stream, _Stdin) else stream


class _Stdin(io.TextIOBase):
    """Standard input, whose reads inside a run go by the run's guard. Everything else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def _look(self, frame: FrameType | None) -> None:
        session = of_run()
        if session is not None and session.guard.virtual:
            see(_READS, frame)

    def read(self, size: int | None = -1, /) -> str:
        self._look(sys._getframe(1))
        return cast(str, self.stream.read(size))

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        self._look(sys._getframe(1))
        return cast(str, self.stream.readline(size))

    def readlines(self, hint: int = -1, /) -> list[str]:  # type: ignore[override]
        self._look(sys._getframe(1))
        return cast("list[str]", self.stream.readlines(hint))

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        return self

    def __next__(self) -> str:  # type: ignore[override]
        self._look(sys._getframe(1))
        return next(cast("Iterator[str]", self.stream))

    @property
    def buffer(self) -> Any:
        self._look(sys._getframe(1))
        return self.stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    # io.TextIOBase has these of its own.
    def fileno(self) -> int:
        return cast(int, self.stream.fileno())

    def isatty(self) -> bool:
        return cast(bool, self.stream.isatty())

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.stream.close()

    @property
    def closed(self) -> bool:
        return cast(bool, self.stream.closed)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return cast(str, self.stream.encoding)

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return cast("str | None", self.stream.errors)

    @property
    def newlines(self) -> Any:  # type: ignore[override]
        return self.stream.newlines

    def detach(self) -> Any:
        return self.stream.detach()

    def __del__(self) -> None:
        """Leaves the stream open: it is not this object's."""


_READS: Found = ("stdin", "reads standard input")
