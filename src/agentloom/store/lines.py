"""Where entries end in the bytes of a trace, and what of a trace can be gone on with.

Only two facts of the format are used here directly: lines end in a newline, and how entry lines and blob lines begin
(docs/trace-format.md).
"""

from __future__ import annotations

from collections.abc import Iterator

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


def recovered(data: bytes, run: str) -> int:
    """How many bytes of a trace that a crash may have torn can be gone on with.

    What follows the last whole entry was never acknowledged and is left out. Any other damage raises `FormatError` or
    `IntegrityError` with its line and offset; `StoreFailed` when the trace is of another run, or has no entry at all.
    """
    if b"\n" not in data:
        raise StoreFailed(
            f"run {run} stopped before its first entry was written: there is nothing to go on with",
            hint="remove it and run the agent again",
            run=run,
        )
    journal = Journal.parse(data, strict=True)
    inside = journal.entries[0].get("run")
    if inside != run:
        raise StoreFailed(
            f"the file of run {run} holds run {inside}",
            hint="import the file instead of copying it into the store's folder",
            run=run,
            found=inside,
        )
    verdict = check(data)
    if not verdict.consistent or verdict.code == "blob.missing":
        raise _unsound(verdict)
    return _without_orphans(data, journal.size, set(verdict.unreferenced))


def _without_orphans(data: bytes, end: int, unreferenced: set[str]) -> int:
    """``end`` without blob lines there that nothing names: after the start entry's own blobs, those of an entry that
    never came."""
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if (
            not data.startswith(BLOB, start)
            or data[start + 9 : start + 73].decode("ascii") not in unreferenced
        ):
            break
        end = start
    return end


def checked(data: bytes) -> tuple[str, bytes]:
    """The run id of a trace from elsewhere, and the trace up to its last whole entry.

    `FormatError` or `IntegrityError` with line and offset when it does not hold, or lacks what its start entry names.
    A payload that is missing elsewhere is no reason to refuse: replay says which calls it cannot serve.
    """
    journal = Journal.parse(data, strict=True)
    verdict = check(data)
    if not verdict.consistent or (verdict.code == "blob.missing" and verdict.line == 1):
        raise _unsound(verdict)
    return str(journal.entries[0]["run"]), data[: journal.size]


def _unsound(verdict: Verdict) -> IntegrityError:
    return IntegrityError(
        verdict.code or "blob.missing",
        verdict.message,
        line=verdict.line,
        offset=verdict.offset,
        hint="get an undamaged copy; `agentloom verify FILE` shows what still holds",
    )
