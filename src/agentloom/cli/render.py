"""Writing to the terminal, to a pipe, or as JSON.

A line is made of spans: plain text, or text with the name of a style. On a terminal with colours the styles are drawn
(by rich, imported only then) and a line that is too wide is cut with an ellipsis; in a pipe the same text comes out
plain and whole. Text from a trace may come from anybody, so control characters never reach the terminal: they are
written as escapes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from agentloom.cli.options import Settings

__all__ = ["STYLES", "Screen", "Span", "clean", "duration", "shorten", "size", "table", "wants_color"]

Span = str | tuple[str, str]
"""Text, or ``(style, text)`` with a style of ``STYLES``: the segments of ``agentloom.replay.text``."""

STYLES: dict[str, str] = {
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "dim": "dim",
    "strong": "bold",
    "name": "cyan",
    "label": "dim",
    "path": "cyan",
    "old": "red",
    "old-part": "bold red reverse",
    "new": "green",
    "new-part": "bold green reverse",
}
"""Names of styles that commands use, and what rich draws for them."""

_DIRECTION_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def wants_color(setting: bool | None, stream: TextIO, environ: dict[str, str] | None = None) -> bool:
    """Whether to colour what goes to ``stream``.

    ``--no-color`` or ``NO_COLOR`` (not empty) say no, ``FORCE_COLOR`` (not empty) says yes, ``TERM=dumb`` no; else yes
    when ``stream`` is a terminal. Rules of no-color.org and force-color.org.
    """
    env = os.environ if environ is None else environ
    if setting is not None:
        return setting
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return env.get("TERM") != "dumb" and stream.isatty()


def clean(text: str) -> str:
    """``text`` without anything that moves a terminal's cursor or reorders its line; such characters become escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(char) for char in text)


def _escape(char: str) -> str:
    if char == "\n":
        return "\\n"
    if char == "\t":
        return "  "
    if char in _DIRECTION_MARKS or unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}:
        code = ord(char)
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    return char


def shorten(text: str, width: int) -> str:
    """``text`` on one line in at most ``width`` characters, with ``...`` where something was left out."""
    line = clean(text)
    return line if len(line) <= width else line[: max(0, width - 3)].rstrip() + "..."


def duration(nanoseconds: int) -> str:
    """A time span for people: ``31 ms``, ``5.1 s``, ``3 min 20 s``."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds // 1000} us"
    if nanoseconds < 1_000_000_000:
        return f"{nanoseconds // 1_000_000} ms"
    if nanoseconds < 100_000_000_000:
        return f"{nanoseconds / 1e9:.1f} s"
    minutes, seconds = divmod(nanoseconds // 1_000_000_000, 60)
    return f"{minutes} min {seconds} s"


def size(count: int) -> str:
    """A number of bytes for people: ``812 B``, ``9.4 KB``, ``1.2 MB`` (powers of 1000)."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("KB", "MB", "GB"):
        value /= 1000
        if value < 1000:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """``rows`` as lines with aligned columns; the last column is not padded."""
    cells = [[clean(cell) for cell in row] for row in rows]
    widths: list[int] = []
    for row in cells:
        for index, cell in enumerate(row[:-1]):
            if index == len(widths):
                widths.append(0)
            widths[index] = max(widths[index], len(cell))
    return ["  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() if row else "" for row in cells]


class Screen:
    """Where a command writes: results to stdout, notes and problems to stderr."""

    def __init__(self, settings: Settings, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.settings = settings
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err
        self._consoles: dict[int, Console] = {}

    @property
    def json(self) -> bool:
        """Whether the result is one JSON document (``--json``)."""
        return self.settings.json

    @property
    def width(self) -> int:
        """Columns to use: the terminal's (or ``COLUMNS``), 100 in a pipe."""
        return max(40, shutil.get_terminal_size((100, 24)).columns) if self._out.isatty() else 100

    def line(self, *spans: Span) -> None:
        """One line of the result on stdout."""
        self._write(self._out, spans)

    def lines(self, lines: Iterable[Sequence[Span]]) -> None:
        """Several lines on stdout, such as a report renders them."""
        for spans in lines:
            self.line(*spans)

    def data(self, document: object) -> None:
        """The result of ``--json``: one JSON document on stdout, ASCII only."""
        self._out.write(json.dumps(document, indent=2, allow_nan=False) + "\n")

    def note(self, *spans: Span) -> None:
        """One line beside the result, on stderr; left out with ``-q`` and with ``--json``."""
        if not self.settings.quiet and not self.settings.json:
            self._write(self._err, spans)

    def detail(self, *spans: Span) -> None:
        """A note for ``-v`` only."""
        if self.settings.verbosity:
            self.note(*spans)

    def problem(self, message: str, hint: str | None) -> None:
        """``error: message`` and ``next: hint`` on stderr, never left out."""
        first, *rest = message.splitlines() or [""]
        self._write(self._err, [("bad", "error: "), first])
        for line in rest:
            self._write(self._err, [line])
        if hint:
            self._write(self._err, [("strong", "next: "), hint])

    def error_text(self, text: str) -> None:
        """Lines on stderr as they are (a traceback, the JSON form of an error)."""
        for line in text.splitlines():
            self._write(self._err, [line])

    def _write(self, stream: TextIO, spans: Iterable[Span]) -> None:
        parts = [("", clean(span)) if isinstance(span, str) else (span[0], clean(span[1])) for span in spans]
        if not wants_color(self.settings.color, stream):
            stream.write("".join(text for _, text in parts).rstrip() + "\n")
            return
        from rich.text import Text

        text = Text.assemble(*((text, STYLES.get(style, "")) for style, text in parts))
        fits = stream is self._out and stream.isatty()
        self._console(stream).print(
            text, no_wrap=fits, overflow="ellipsis" if fits else "ignore", soft_wrap=not fits
        )

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        key = id(stream)
        if key not in self._consoles:
            self._consoles[key] = Console(
                file=stream,
                force_terminal=True,
                highlight=False,
                markup=False,
                emoji=False,
                legacy_windows=False,
            )
        return self._consoles[key]
