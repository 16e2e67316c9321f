"""Where entries end in the bytes of a trace, and what of a trace can be gone on with.

Only two facts of the format are used here directly: lines end in a newline, and how entry lines and blob lines begin
(docs/trace-format.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from agentloom.errors import IntegrityError, StoreFailed
from agentloom.format.journal import Journal, Verdict, check

__all__ = ["BLOB", "ENTRY", "append_ends", "checked", "recovered", "whole_lines"]

ENTRY = b'{"seq":'
BLOB = b'{"blob":"'


def append_ends(data: bytes) -> Iterator[int]:
    """The offset after each entry but the start entry: there one append ended and the next began."""
    position = data.find(b"\n") + 1
    while position and (end := data.find(b"\n", position) + 1):
        if data.startswith(ENTRY, position):
            yield end
        position = end


def whole_lines(data: bytes) -> bytes:
    """``data`` without a last line that has no newline (it is being written, or a crash tore it)."""
    end = data.rfind(b"\n") + 1
    return data if end == len(data) else data[:end]


def _nothing_written(run: str) -> StoreFailed:
    return StoreFailed(
        f"run {run} stopped before its first entry was written: there is nothing to go on with",
        hint="remove it and run the agent again",
        run=run,
    )


def recovered(data: bytes, run: str) -> int:
    """How many bytes of a trace that a crash may have torn can be gone on with.

    What follows the last whole entry was never acknowledged and is left out. Any other damage raises `FormatError` or
    `IntegrityError` with its line and offset; `StoreFailed` when the trace is of another run, or has no entry at all.
    """
    if b"\n" not in data:
        raise _nothing_written(run)
    verdict = _sound(data)
    inside = _run_of(data)
    if inside != run:
        raise StoreFailed(
            f"the file of run {run} holds run {inside}",
            hint="import the file instead of copying it into the store's folder",
            run=run,
            found=inside,
        )
    if verdict.code == "blob.missing":
        if verdict.entries == 1:  # its payloads follow the start entry: the first append is torn
            raise _nothing_written(run)
        raise _unsound(verdict)
    return _acknowledged(data, verdict)


def checked(data: bytes) -> tuple[str, bytes]:
    """The run id of a trace from elsewhere, and the trace up to its last whole entry.

    `FormatError` or `IntegrityError` with line and offset when it does not hold, or lacks what its start entry names.
    A payload that is missing elsewhere is no reason to refuse: replay says which calls it cannot serve.
    """
    verdict = _sound(data)
    if verdict.code == "blob.missing" and verdict.line == 1:
        raise _unsound(verdict)
    return _run_of(data), data[: _acknowledged(data, verdict)]


def _sound(data: bytes) -> Verdict:
    verdict = check(data)
    if not verdict.consistent:
        Journal.parse(data, strict=True)  # tells malformed from edited, and raises the error of that kind
        raise _unsound(verdict)
    return verdict


def _run_of(data: bytes) -> str:
    start: dict[str, object] = orjson.loads(data[: data.index(b"\n")])
    return str(start["run"])


def _acknowledged(data: bytes, verdict: Verdict) -> int:
    """The end of the last whole append: without the torn line, and without payloads at the end that nothing names."""
    end = len(data) - verdict.torn
    unreferenced = set(verdict.unreferenced)
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if (
            not data.startswith(BLOB, start)
            or data[start + 9 : start + 73].decode("ascii") not in unreferenced
        ):
            break
        end = start
    return end


def _unsound(verdict: Verdict) -> IntegrityError:
    return IntegrityError(
        verdict.code or "blob.missing",
        verdict.message,
        line=verdict.line,
        offset=verdict.offset,
        hint="get an undamaged copy; `agentloom verify FILE` shows what still holds",
    )
