"""Searching the text of a run: its input, prompts, answers, tool results and output, as people and models wrote them.

A search reads every byte of the traces it is asked about; nothing of their text is kept anywhere to make it quicker.
What is not part of the conversation is not searched: the agent's sources, the environment, entries, names of fields.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, cast

import orjson

from agentloom.format.guards import is_list, is_map
from agentloom.store.lines import BLOB, ENTRY
from agentloom.store.scan import Source

__all__ = ["TextSearch"]

_WINDOW = 4 << 20  # bytes that are read at a time
_ASIDE = (
    "code",
    "env",
    "policy",
    "nonce",
)  # payloads of the start entry that say nothing of the conversation
_STREAMS = b'"kind":"chunks"'
_BYTES = b'"form":"bytes"'


class TextSearch:
    """Seeks ``text`` in traces, ASCII letters in either case."""

    def __init__(self, text: str) -> None:
        self._text = _lower(text)
        # As it stands inside a JSON string of a trace: where that is not in a piece of a file, the text is not either.
        self._sought = orjson.dumps(self._text.encode("utf-8", "replace").decode())[1:-1]

    def found(self, source: Source) -> bool:
        """Whether the text is in a payload of the trace. What is damaged is searched as far as it can be read."""
        aside: set[bytes] = set()
        streams = False
        seams = _Seams(self._text.encode("utf-8", "replace"))
        for number, window in enumerate(_windows(source)):
            if number == 0:
                aside = _aside(window)
            streams = streams or _STREAMS in window
            if self._sought not in window.lower() and _BYTES not in window and not _in_pieces(window):
                continue
            for line in window.split(b"\n"):
                if line.startswith(BLOB) and line[9:73] not in aside and self._in_blob(line, seams):
                    return True
        return seams.found() or (streams and self._in_streams(source))

    def _in_blob(self, line: bytes, seams: _Seams) -> bool:
        if _BYTES in line[:140]:
            return self._in_bytes(line, seams)
        if _in_pieces(line):
            seams.joined(_data(line))
        if self._sought not in line.lower():
            return False
        return any(self._text in _lower(text) for text in _texts(_data(line)))

    def _in_bytes(self, line: bytes, seams: _Seams) -> bool:
        """A piece of a text over 1 MiB, or of anything else."""
        try:
            data = base64.b64decode(cast("str", _data(line)), validate=True).lower()
        except (TypeError, ValueError, binascii.Error):
            return False
        seams.piece(line[9:73].decode("ascii", "replace"), data)
        return self._text.encode("utf-8", "replace") in data

    def _in_streams(self, source: Source) -> bool:
        """The pieces of streamed answers, put together: the texts of one field, of all chunks of one call."""
        recent: dict[str, Any] = {}
        ends: dict[tuple[str, str], str] = {}  # what a field of a call ended with so far
        for window in _windows(source):
            if _STREAMS not in window and not recent:
                continue
            for line in window.split(b"\n"):
                if line.startswith(BLOB):
                    recent[line[9:73].decode("ascii", "replace")] = line
                    continue
                if _STREAMS in line[:160]:
                    entry = _json(line)
                    chunks = recent.get(entry.get("val", "")) if is_map(entry) else None
                    if chunks is not None and self._joined(str(entry["call"]), _data(chunks), ends):
                        return True
                recent.clear()
        return False

    def _joined(self, call: str, chunks: Any, ends: dict[tuple[str, str], str]) -> bool:
        keep = max(0, len(self._text) - 1)
        for chunk in chunks if is_list(chunks) else []:
            for path, text in _fields(chunk, ""):
                whole = ends.get((call, path), "") + _lower(text)
                if self._text in whole:
                    return True
                ends[call, path] = whole[-keep:] if keep else ""
        return False


class _Seams:
    """Where the pieces of texts over 1 MiB meet. Of each piece only its ends are kept, as long as what is sought: in a
    trace the pieces stand in the order of their ids, before the payload that says how they belong together."""

    def __init__(self, sought: bytes) -> None:
        self._sought = sought
        self._keep = max(0, len(sought) - 1)
        self._ends: dict[
            str, tuple[bytes, bytes | None]
        ] = {}  # first and last bytes; a short piece whole, and None
        self._wholes: list[list[str]] = []

    def piece(self, blob: str, data: bytes) -> None:
        """A piece, in lower case."""
        if len(data) <= 2 * self._keep:
            self._ends[blob] = (data, None)
        else:
            self._ends[blob] = (data[: self._keep], data[len(data) - self._keep :])

    def joined(self, tree: Any) -> None:
        """A payload in which texts say which pieces they are made of, in their order."""
        for container in _containers(tree):
            pieces: Any = None
            if is_map(container) and len(container) == 1:
                pieces = container.get("$text") or container.get("$bytes")
            if is_list(pieces):
                ids = [one.get("$ref") for one in pieces if is_map(one)]
                self._wholes.append([blob for blob in ids if isinstance(blob, str)])

    def found(self) -> bool:
        """Whether the text lies across two pieces, or more."""
        return any(self._across(whole) for whole in self._wholes)

    def _across(self, whole: list[str]) -> bool:
        before = b""
        for blob in whole:
            first, last = self._ends.get(blob, (b"", b""))
            if self._sought in before + first:
                return True
            before = (before + first if last is None else last)[-self._keep :] if self._keep else b""
        return False


def _in_pieces(data: bytes) -> bool:
    return b'{"$text":[' in data or b'{"$bytes":[' in data


def _lower(text: str) -> str:
    """ASCII letters in lower case, all others as they are."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def _windows(source: Source) -> Iterator[bytes]:
    """The trace in pieces that end with a line; what is left of the last line comes last."""
    rest = b""
    position = 0
    while position < source.size and (part := source.span(position, min(_WINDOW, source.size - position))):
        position += len(part)
        end = part.rfind(b"\n") + 1
        if not end:
            rest += part
            continue
        yield rest + part[:end]
        rest = part[end:]
    if rest:
        yield rest


def _aside(window: bytes) -> set[bytes]:
    """The ids of the payloads that are no conversation, and of those that they refer to."""
    first, *others = window.split(b"\n")
    start = _json(first) if first.startswith(ENTRY) else None
    if not is_map(start):
        return set()
    ids = {str(start.get(name)).encode() for name in _ASIDE}
    lines: dict[bytes, bytes] = {}
    for line in others:
        if not line.startswith(BLOB):
            break
        lines[line[9:73]] = line
    todo = list(ids)
    while todo:
        held = lines.get(todo.pop())
        if held is None or _BYTES in held[:140]:
            continue
        for blob in _refs(_data(held)):
            if blob not in ids:
                ids.add(blob)
                todo.append(blob)
    return ids


def _json(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:  # damaged, or cut off: verify says where
        return None


def _data(line: bytes) -> Any:
    blob = _json(line)
    return blob.get("data") if is_map(blob) else None


def _refs(tree: Any) -> Iterator[bytes]:
    for container in _containers(tree):
        if is_map(container) and isinstance(container.get("$ref"), str) and len(container) == 1:
            yield container["$ref"].encode()


def _containers(tree: Any) -> Iterator[Any]:
    todo = [tree]
    while todo:
        item = todo.pop()
        if is_map(item):
            yield item
            todo.extend(item.values())
        elif is_list(item):
            todo.extend(item)


def _texts(tree: Any) -> Iterator[str]:
    """Every text and number in a tree that is a value: no name of a field, no id of a payload."""
    todo = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif is_map(item):
            if len(item) == 1 and "$list" in item:  # [id of the list that it extends, how much of it, items]
                todo.extend(item["$list"][1:])
            elif "$ref" not in item or len(item) > 1:
                todo.extend(item.values())
        elif is_list(item):
            todo.extend(item)
        elif type(item) is int or type(item) is float:
            yield str(item)


def _fields(tree: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every text in a tree with the names of the fields that lead to it."""
    if isinstance(tree, str):
        yield path, tree
    elif is_map(tree):
        for name, item in tree.items():
            yield from _fields(item, f"{path}.{name}")
    elif is_list(tree):
        for index, item in enumerate(tree):
            yield from _fields(item, f"{path}[{index}]")
