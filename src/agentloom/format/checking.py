"""``check``: the three verdicts on a file (docs/trace-format.md, Verification). Never raises for bad bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentloom.format.digests import NO_PREV
from agentloom.format.fields import Broken, references
from agentloom.format.lines import blob_references
from agentloom.format.scanning import Fault, Scan, scan

__all__ = ["Verdict", "check"]


@dataclass(slots=True)
class Verdict:
    """What a check found.

    ``consistent``: every line, digest and order holds. ``unaltered``: against a head kept elsewhere, None without one.
    ``complete``: the run ended, and nothing that it recorded is missing except what was erased on purpose.
    ``code``, ``line``, ``offset``, ``message`` name the first fault, or else the first thing that is incomplete.
    """

    consistent: bool
    unaltered: bool | None
    complete: bool
    code: str | None = None
    line: int | None = None
    offset: int | None = None
    message: str = ""
    head: str = NO_PREV
    entries: int = 0
    blobs: int = 0
    calls: int = 0
    torn: int = 0
    head_seq: int | None = None  # the entry whose digest the given head is
    missing: list[str] = field(default_factory=list[str])
    unreferenced: list[str] = field(default_factory=list[str])
    erased: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        """Whether no verdict is no."""
        return self.consistent and self.unaltered is not False and self.complete


def check(data: bytes, *, head: str | None = None) -> Verdict:
    """The verdicts on the bytes of a trace; ``head`` is a digest that was kept elsewhere."""
    found = scan(data)
    verdict = Verdict(found.fault is None, None, False, entries=len(found.entries), blobs=len(found.blobs))
    verdict.calls = sum(entry["kind"] == "request" for entry in found.entries)
    verdict.torn = len(data) - found.whole(len(data)) if found.fault is None else 0
    verdict.head = found.digests[-1] if found.digests else NO_PREV
    fault = found.fault
    if fault is None:
        fault = _check_blobs(found, verdict)
        verdict.consistent = fault is None
    if fault is None:
        fault = _incomplete(found, verdict)
        verdict.complete = fault is None
    if head is not None:
        verdict.head_seq = found.digests.index(head) if head in found.digests else None
        verdict.unaltered = verdict.consistent and verdict.head_seq is not None
        if verdict.consistent and not verdict.unaltered:
            last = found.entry_lines[-1]
            fault = Fault("head.mismatch", *last, "no entry has the head that was kept elsewhere")
    if fault is not None:
        verdict.code, verdict.line, verdict.offset, verdict.message = (
            fault.code,
            fault.line,
            fault.offset,
            fault.message,
        )
    return verdict


def _check_blobs(found: Scan, verdict: Verdict) -> Fault | None:
    """References, missing and unreferenced blobs, and the one place where each blob may stand."""
    links: dict[str, list[str]] = {}
    lines = {blob: (line, offset) for blob, line, offset, _ in found.blob_lines}
    for blob, (form, covered) in found.blobs.items():
        if blob in found.rules.erased:
            return Fault("erase.present", *lines[blob], f"blob {blob[:12]} was erased but is there")
        if form != "json":
            continue
        try:
            refs = blob_references(covered)
        except Broken as error:
            return Fault(error.code, *lines[blob], error.message)
        if refs:
            links[blob] = refs
    owners, missing = _owners(found, links)
    verdict.missing = [blob for blob in missing if blob not in found.rules.erased]
    verdict.erased = list(found.rules.erased)
    verdict.unreferenced = [blob for blob in found.blobs if blob not in owners]
    return _check_places(found, owners)


def _owners(found: Scan, links: dict[str, list[str]]) -> tuple[dict[str, int], list[str]]:
    """For each blob the first entry that reaches it; and what is named but not there."""
    owners: dict[str, int] = {}
    missing: dict[str, None] = {}
    for seq, entry in enumerate(found.entries):
        todo = references(entry)
        while todo:
            blob = todo.pop()
            if blob in owners:
                continue
            if blob not in found.blobs:
                missing[blob] = None
                continue
            owners[blob] = seq
            todo.extend(links.get(blob, ()))
    return owners, list(missing)


def _check_places(found: Scan, owners: dict[str, int]) -> Fault | None:
    """A blob stands right before the first entry that reaches it (the start entry's: right after it), sorted by id."""
    erased = bool(found.rules.erased)
    last = (-1, "")
    for blob, line, offset, before in found.blob_lines:
        owner = owners.get(blob)
        if owner is None:
            continue
        allowed = (0, 1) if before == 1 else (before,)
        if erased:  # what reached it may be gone: only the order within a group is left to check
            owner = owner if owner in allowed else allowed[-1]
        if owner not in allowed:
            return Fault("blob.place", line, offset, f"blob {blob[:12]} belongs to entry {owner}")
        if (owner, blob) <= last:
            return Fault("blob.order", line, offset, f"blob {blob[:12]} is not in its place by id")
        last = (owner, blob)
    return None


def _incomplete(found: Scan, verdict: Verdict) -> Fault | None:
    line, offset = found.entry_lines[-1]
    if verdict.missing:
        return _first_naming(found, set(verdict.missing))
    if verdict.torn:
        return Fault(
            "tail.torn", line, offset, f"{verdict.torn} bytes of an unfinished append after the last entry"
        )
    if found.rules.end is None:
        return Fault(
            "end.missing",
            line,
            offset,
            "no end entry: the run goes on, was cut short, or its tail was cut off",
        )
    if found.rules.gaps:
        return next(
            Fault(
                "gap.present",
                *place,
                f"something was not recorded here ({entry.get('why')}): not replayable past it",
            )
            for place, entry in zip(found.entry_lines, found.entries, strict=True)
            if entry["kind"] == "gap"
        )
    return None


def _first_naming(found: Scan, missing: set[str]) -> Fault:
    blob = min(missing)
    for place, entry in zip(found.entry_lines, found.entries, strict=True):
        named = missing.intersection(references(entry))
        if named:
            return Fault("blob.missing", *place, f"payload {min(named)[:12]} is not in the file")
    return Fault("blob.missing", *found.entry_lines[-1], f"payload {blob[:12]} is not in the file")
