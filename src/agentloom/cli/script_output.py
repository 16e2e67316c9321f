"""A script's standard streams: shown as ever, and kept as part of the run's output.

What host work prints (a tool, an SDK's logging during a request) is shown, but belongs to its call.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Generator
from typing import Any, cast

from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.guard_input import ask_with, terminal_line
from agentloom.runtime.scope import current
from agentloom.runtime.work import under_way

__all__ = ["Capture", "StreamFacts", "stream_facts"]

StreamFacts = dict[str, Any]
"""What a program can see of a stream: ``{"tty": bool, "encoding": str, "errors": str}``."""


def stream_facts() -> dict[str, StreamFacts]:
    """The facts of this process's three streams."""
    return {name: _facts(getattr(sys, name)) for name in ("stdin", "stdout", "stderr")}


def _facts(stream: Any) -> StreamFacts:
    if stream is None:
        return {"tty": False, "encoding": "utf-8", "errors": "strict"}
    return {"tty": bool(stream.isatty()), "encoding": stream.encoding, "errors": stream.errors}


class Capture:
    """Keeps what goes to stdout and stderr while ``installed``. ``show`` maps a stream's name to where it is shown."""

    def __init__(self, facts: dict[str, StreamFacts], show: dict[str, Callable[[bytes], None]]) -> None:
        self.facts = facts
        self._show = show
        self._kept: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

    def text(self, name: str) -> str | bytes:
        """All of one stream: text in its encoding, or bytes when it is none."""
        data = b"".join(self._kept[name])
        try:
            return data.decode(self.facts[name]["encoding"])
        except UnicodeDecodeError:
            return data

    def shown(self, name: str, text: str) -> None:
        """Add to the run's output what has been shown already."""
        self._kept[name].append(self._bytes(name, text))

    def again(self, name: str, text: str) -> None:
        """Add to the run's output, and show it."""
        data = self._bytes(name, text)
        self._kept[name].append(data)
        self._show[name](data)

    def _bytes(self, name: str, text: str) -> bytes:
        return text.encode(self.facts[name]["encoding"], "backslashreplace")

    def write(self, name: str, data: bytes) -> None:
        """The program, or host work, writes."""
        work = under_way()
        if work is None:
            self._kept[name].append(data)
        elif work.keep:
            work.printed.append((name, data.decode(self.facts[name]["encoding"], "backslashreplace")))
        self._show[name](data)

    @contextlib.contextmanager
    def installed(self) -> Generator[None]:
        """Replace the process's streams for the block."""
        before = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__, os.write)
        new_in = _reader(self.facts["stdin"])
        out, err = (_writer(self, name, self.facts[name]) for name in ("stdout", "stderr"))
        system = cast(Any, sys)
        system.stdin = system.__stdin__ = new_in
        ask_with(self._line if self.facts["stdin"]["tty"] else None, recorded=not self.facts["stdin"]["tty"])
        system.stdout = system.__stdout__ = out
        system.stderr = system.__stderr__ = err
        os.write = self._os_write(os.write)
        try:
            yield
        finally:
            ask_with(None)
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
