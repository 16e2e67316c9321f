"""A script's standard streams: shown as ever, and kept as part of the run's output.

What host work prints (a tool, an SDK's logging during a request) is shown, but belongs to its call.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, cast

from agentloom.cli.script_print import Print, printing
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.guard_input import ask_with, terminal_line
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.scope import current
from agentloom.runtime.work import under_way

__all__ = ["Capture", "Place", "StreamFacts", "stream_facts"]

StreamFacts = dict[str, Any]
"""What a program can see of a stream: ``{"tty": bool, "encoding": str, "errors": str}``."""


def stream_facts() -> dict[str, StreamFacts]:
    """The facts of this process's three streams."""
    return {name: _facts(getattr(sys, name)) for name in ("stdin", "stdout", "stderr")}


def _facts(stream: Any) -> StreamFacts:
    if stream is None:
        return {"tty": False, "encoding": "utf-8", "errors": "strict"}
    return {"tty": bool(stream.isatty()), "encoding": stream.encoding, "errors": stream.errors}


Place = tuple[int, int]
"""Where a tool printed something: after how many of the program's own writes to that stream, and the how many-eth thing
it is that a tool printed."""


class Capture:
    """Keeps what goes to stdout and stderr while ``installed``. ``show`` maps a stream's name to where it is shown.

    What tools print stands where it was printed, and counts once the outcome of the tool's call is there. ``coming``:
    on replay, what tools printed while other code of the program went on: ``(stream, place, text)``.
    """

    def __init__(
        self,
        facts: dict[str, StreamFacts],
        show: dict[str, Callable[[bytes], None]],
        coming: Iterable[tuple[str, Place, str]] = (),
    ) -> None:
        self.facts = facts
        self._show = show
        self._own: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        self._of_tools: dict[str, list[tuple[Place, bytes]]] = {"stdout": [], "stderr": []}
        self._coming: dict[str, deque[tuple[Place, str]]] = {"stdout": deque(), "stderr": deque()}
        for name, place, text in sorted(coming, key=lambda one: one[1]):
            self._coming[name].append((place, text))
        self._printed = 0
        self._last = 0
        self._print = Print(self._written)
        self._lock = free_in_children(threading.RLock())

    def text(self, name: str) -> str | bytes:
        """All of one stream: text in its encoding, or bytes when it is none."""
        parts: list[bytes] = []
        own = self._own[name]
        at = 0
        for (after, _), data in sorted(self._of_tools[name], key=lambda one: one[0]):
            parts += own[at:after]
            parts.append(data)
            at = max(at, after)
        data = b"".join(parts + own[at:])
        try:
            return data.decode(self.facts[name]["encoding"])
        except UnicodeDecodeError:
            return data

    def shown(self, name: str, text: str, place: Place | None = None) -> None:
        """Add to the run's output what a tool has printed, and shown already; at its place, else here."""
        self._add(name, text, place)

    def again(self, name: str, text: str, place: Place | None = None) -> None:
        """Add to the run's output what a tool printed when recorded, and show it, unless it was shown at its place."""
        known = place is not None
        place = self._add(name, text, place)
        self._show_before(name, place)
        if known:
            if not self._coming[name] or self._coming[name][0] != (place, text):
                return  # shown already
            self._coming[name].popleft()
        self._show[name](self._bytes(name, text))

    def _add(self, name: str, text: str, place: Place | None) -> Place:
        place = place or (len(self._own[name]), self._last + 1)
        self._last = max(self._last, place[1])
        self._of_tools[name].append((place, self._bytes(name, text)))
        return place

    def _show_before(self, name: str, place: Place) -> None:
        """Show what tools printed to a stream before ``place``."""
        coming = self._coming[name]
        while coming and coming[0][0] < place:
            self._show[name](self._bytes(name, coming.popleft()[1]))

    def _bytes(self, name: str, text: str) -> bytes:
        return text.encode(self.facts[name]["encoding"], "backslashreplace")

    def write(self, name: str, data: bytes) -> None:
        """The program, or host work, writes."""
        if (gathered := self._print.gathered) is not None:
            gathered.append((name, data))
        else:
            self._written([(name, data)])

    def _written(self, pieces: list[tuple[str, bytes]]) -> None:
        """Keep and show what was written at once, in one piece with regard to other threads."""
        work = under_way()
        shown: dict[str, list[bytes]] = {}
        with self._lock:
            for name, data in pieces:
                if work is None:
                    if self._coming[name]:
                        self._show_before(name, (len(self._own[name]) + 1, 0))
                    self._own[name].append(data)
                elif work.keep:
                    self._printed += 1
                    work.places.append((len(self._own[name]), self._printed))
                    work.printed.append((name, data.decode(self.facts[name]["encoding"], "backslashreplace")))
                shown.setdefault(name, []).append(data)
            for name, parts in shown.items():
                self._show[name](b"".join(parts))

    @contextlib.contextmanager
    def installed(self) -> Generator[None]:
        """Replace the process's streams for the block."""
        before = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__, os.write)
        printed = builtins.print
        new_in = _reader(self.facts["stdin"])
        out, err = (_writer(self, name, self.facts[name]) for name in ("stdout", "stderr"))
        system = cast(Any, sys)
        system.stdin = system.__stdin__ = new_in
        ask_with(self._line if self.facts["stdin"]["tty"] else None, recorded=not self.facts["stdin"]["tty"])
        system.stdout = system.__stdout__ = out
        system.stderr = system.__stderr__ = err
        os.write = self._os_write(os.write)
        builtins.print = cast(Any, printing(printed, self._print))
        try:
            yield
        finally:
            ask_with(None)
            builtins.print = printed
            for stream in (out, err):
                with contextlib.suppress(ValueError):  # the program closed it
                    stream.flush()
            (
                sys.stdin,
                sys.stdout,
                sys.stderr,
                system.__stdin__,
                system.__stdout__,
                system.__stderr__,
                os.write,
            ) = before

    @staticmethod
    def _line() -> str:
        """One line from the terminal, for ``input()``."""
        return terminal_line(0)

    def _os_write(self, original: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        names = {1: "stdout", 2: "stderr"}

        def write(fd: int, data: Any, /) -> int:
            name = names.get(fd)
            if name is None:
                return original(fd, data)
            self.write(name, bytes(data))
            return len(data)

        return write


class _Tee(io.RawIOBase):
    def __init__(self, capture: Capture, name: str, tty: bool) -> None:
        self._capture = capture
        self._stream = name
        self._tty = tty
        self.name, self.mode = f"<{name}>", "wb"  # as Python's own; constants, so that a replay sees the same

    @property
    def raw(self) -> _Tee:
        """Nothing is buffered here: the stream below this one is itself."""
        return self

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._tty

    def fileno(self) -> int:
        return 1 if self._stream == "stdout" else 2

    def write(self, data: Any, /) -> int:
        chunk = bytes(data)
        self._capture.write(self._stream, chunk)
        return len(chunk)


def _writer(capture: Capture, name: str, facts: StreamFacts) -> io.TextIOWrapper:
    raw = cast(Any, _Tee(capture, name, facts["tty"]))
    stream = io.TextIOWrapper(raw, encoding=facts["encoding"], errors=facts["errors"], write_through=True)
    cast(Any, stream).mode = "w"
    return stream


class _Input(io.RawIOBase):
    """Standard input: each read is a host call, so that a replay reads the same without anybody typing."""

    def __init__(self, tty: bool) -> None:
        self._tty = tty
        self._owner = os.getpid()
        self.name, self.mode = "<stdin>", "rb"

    def fileno(self) -> int:
        return 0

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._tty

    def readinto(self, buffer: Any, /) -> int:
        if os.getpid() != self._owner:  # a process that the program forked is no part of the run
            return os.readv(0, [buffer])
        if current() is None:
            raise NotSupported(
                "standard input was read in a thread or in a tool, where it cannot be recorded",
                hint="read it in the main thread of the script",
            )
        size = len(buffer)
        value = call_inline(CallSpec("stdin", "read", {}), lambda _: _as_text(os.read(0, size)))
        data = value.encode() if isinstance(value, str) else cast(bytes, value)
        buffer[: len(data)] = data
        return len(data)


def _as_text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _reader(facts: StreamFacts) -> io.TextIOWrapper:
    raw = io.BufferedReader(_Input(facts["tty"]))
    stream = io.TextIOWrapper(raw, encoding=facts["encoding"], errors=facts["errors"])
    cast(Any, stream).mode = "r"
    return stream
