"""Call ids: where a call stands in the run's structure, never when it happened (docs/trace-format.md, Call ids).

``root/support/task[1]#3~2`` is the second attempt of call 3 on the path ``root/support/task[1]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentloom.errors import FormatError
from agentloom.format.limits import CALL_BYTES

__all__ = [
    "CallId",
    "Segment",
    "build",
    "check",
    "escape",
    "join",
    "parse",
    "parse_path",
    "path_text",
    "segment",
    "unescape",
]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-]")
_SEGMENT = re.compile(r"((?:[A-Za-z0-9_.\-]|%[0-9A-F]{2})+)(?:\[(0|[1-9][0-9]*)\])?")
_CALL = re.compile(r"([^#~]+)#(0|[1-9][0-9]*)(?:~([2-9]|[1-9][0-9]+))?")
_NUMBER = "(?:0|[1-9][0-9]*)"
_PLAIN_SEGMENT = rf"[A-Za-z0-9_.\-]+(?:\[{_NUMBER}\])?"
_PLAIN = re.compile(rf"{_PLAIN_SEGMENT}(?:/{_PLAIN_SEGMENT})*#{_NUMBER}(?:~(?:[2-9]|[1-9][0-9]+))?")


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of a path: a name, and an index where several stand side by side."""

    name: str
    index: int | None = None

    def __str__(self) -> str:
        return escape(self.name) if self.index is None else f"{escape(self.name)}[{self.index}]"


@dataclass(frozen=True, slots=True)
class CallId:
    """A parsed call id. ``attempt`` counts from 1; the logical call is the id without its attempt."""

    path: tuple[Segment, ...]
    counter: int
    attempt: int = 1

    def __str__(self) -> str:
        text = f"{path_text(self.path)}#{self.counter}"
        return text if self.attempt == 1 else f"{text}~{self.attempt}"

    @property
    def logical(self) -> str:
        """The id of the call whatever the attempt: what an idempotency key is made of."""
        return f"{path_text(self.path)}#{self.counter}"


def escape(name: str) -> str:
    """``name`` with every character outside ``A-Za-z0-9_.-`` as percent-encoded UTF-8. An empty name is an error."""
    if not name:
        raise FormatError("callid.syntax", "a path segment needs a name")
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in _utf8(match.group())), name)


def unescape(text: str) -> str:
    """The name that ``escape`` wrote. ``FormatError`` when the bytes are not UTF-8 or need no escape."""
    try:
        name = re.sub(
            rb"%([0-9A-F]{2})", lambda match: bytes.fromhex(match.group(1).decode()), text.encode()
        ).decode("utf-8", "surrogatepass")
        same = escape(name) == text
    except ValueError as error:
        raise FormatError("callid.syntax", f"{text!r} is not percent-encoded UTF-8") from error
    if not same:
        raise FormatError("callid.syntax", f"{text!r} is not the one spelling of the name {name!r}")
    return name


def path_text(path: tuple[Segment, ...]) -> str:
    """``root/support/task[1]``."""
    return "/".join(str(segment) for segment in path)


def segment(name: str, index: int | None = None) -> str:
    """The text of one segment: ``task[1]``."""
    return str(Segment(name, index))


def build(path: str, counter: int, attempt: int = 1) -> str:
    """A call id from a path text that ``path_text`` or ``join`` made."""
    return f"{path}#{counter}" if attempt == 1 else f"{path}#{counter}~{attempt}"


def join(path: str, name: str, index: int | None = None) -> str:
    """``path`` with one more segment; an empty ``path`` starts one."""
    return f"{path}/{segment(name, index)}" if path else segment(name, index)


def parse_path(text: str) -> tuple[Segment, ...]:
    """The segments of a path. ``FormatError`` when it is not one."""
    segments: list[Segment] = []
    for part in text.split("/"):
        match = _SEGMENT.fullmatch(part)
        if match is None:
            raise FormatError("callid.syntax", f"{text!r} is not a path: {part!r} is not name or name[i]")
        name, index = match.groups()
        segments.append(Segment(unescape(name), None if index is None else int(index)))
    return tuple(segments)


def check(text: str) -> None:
    """``FormatError`` when ``text`` is not a call id. Quick for the usual ones, which have no escapes."""
    if len(text) > CALL_BYTES or _PLAIN.fullmatch(text) is None:
        parse(text)


def parse(text: str) -> CallId:
    """A call id from its text; ``str(parse(text)) == text``. ``FormatError`` when it is not one."""
    if len(text) > CALL_BYTES:
        raise FormatError("callid.syntax", f"a call id of {len(text)} characters; the limit is {CALL_BYTES}")
    match = _CALL.fullmatch(text)
    if match is None:
        raise FormatError(
            "callid.syntax", f"{text!r} is not a call id (path#counter or path#counter~attempt)"
        )
    path, counter, attempt = match.groups()
    return CallId(parse_path(path), int(counter), int(attempt or 1))


def _utf8(character: str) -> bytes:
    return character.encode("utf-8", "surrogatepass")
