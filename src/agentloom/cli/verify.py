"""``agentloom verify``: does the chain hold, is it the recorded one, is it all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.render import Span
from agentloom.cli.runs import RUN, Found, find
from agentloom.format.journal import Journal, Verdict, check

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["command"]

_HEX = 64


@click.command(short_help="Check that nobody altered a run.")
@click.argument("run", type=RUN)
@click.option(
    "--head", metavar="HEAD", help="A head kept elsewhere: the digest of the last entry, 64 hex digits."
)
@common
def command(settings: Settings, run: str, *, head: str | None) -> int:
    """Recompute every digest of RUN (a run, or a file).

    Three verdicts: consistent (the chain holds), unaltered (it is the chain with the HEAD that was kept elsewhere),
    complete (the run has its end). Without a head a consistent file may still have been rewritten from start to end.
    """
    kept = None if head is None else _digest(head)
    found = find(settings, run)
    verdict = check(found.data, head=kept)
    screen = settings.screen()
    if screen.json:
        screen.data(_json(found, verdict))
    else:
        screen.lines(_lines(found, verdict, kept))
    lost = (
        verdict.missing and not verdict.torn
    )  # what a crash left unfinished is no loss of what was acknowledged
    if (verdict.code or "").startswith("version."):
        return Exit.ERROR  # the bytes may be perfectly sound; this version cannot tell
    sound = verdict.consistent and verdict.unaltered is not False and not lost
    return Exit.OK if sound else Exit.INTEGRITY


def _digest(head: str) -> str:
    """The hex digits of a head. Raises ``click.BadParameter``."""
    digits = head.strip().lower().removeprefix("sha256:")
    if len(digits) != _HEX or not set(digits) <= set("0123456789abcdef"):
        raise click.BadParameter(
            f"{head!r} is no head: {_HEX} hex digits, as `agentloom export` prints them", param_hint="--head"
        )
    return digits


def _durability(found: Found) -> str | None:
    """What the entries of a trace outlive, as its policy says; None where it does not say."""
    journal = Journal.parse(found.data)
    blob = journal.entries[0].get("policy")
    policy = journal.tree(blob) if isinstance(blob, str) and journal.has(blob) else None
    said = policy.get("durability") if isinstance(policy, dict) else None
    return said if isinstance(said, str) else None


def _json(found: Found, verdict: Verdict) -> dict[str, object]:
    return {
        "run": found.run,
        "file": found.path,
        "consistent": verdict.consistent,
        "unaltered": verdict.unaltered,
        "complete": verdict.complete,
        "durability": _durability(found) if verdict.consistent else None,
        "head": verdict.head,
        "head_at_entry": verdict.head_seq,
        "entries": verdict.entries,
        "calls": verdict.calls,
        "blobs": verdict.blobs,
        "torn_bytes": verdict.torn,
        "missing": verdict.missing,
        "unreferenced": verdict.unreferenced,
        "erased": verdict.erased,
        "code": verdict.code,
        "line": verdict.line,
        "offset": verdict.offset,
        "message": verdict.message,
    }


def _lines(found: Found, verdict: Verdict, kept: str | None) -> Iterator[list[Span]]:
    counts = f"{verdict.entries:,} entries, {verdict.calls:,} calls, {verdict.blobs:,} payloads"
    place = "" if verdict.line is None else f"line {verdict.line:,}, byte {verdict.offset:,}: "
    if not verdict.consistent:
        word = "NOT READABLE" if (verdict.code or "").startswith("version.") else "NOT CONSISTENT"
        yield [("bad", word), f"  {found.name}"]
        yield ["  first fault  ", f"{place}{verdict.message} [{verdict.code}]"]
        yield ["  before it    ", f"{verdict.entries:,} entries hold"]
        newer = (verdict.code or "").startswith("version.")
        yield [
            "  next         ",
            "upgrade agentloom: the file needs a newer one"
            if newer
            else "take the file from where it was made; `agentloom show` reads what is sound",
        ]
        return
    if verdict.unaltered is False:
        yield [("bad", "ALTERED"), f"  {found.name}  {counts}"]
        yield ["  head         ", f"{verdict.head}"]
        yield ["  kept head    ", f"{kept}: no entry has it"]
        yield [
            "  so           ",
            "the chain holds, but it is not the one that was recorded: it was written anew, or cut",
        ]
        return
    word = "CONSISTENT" if verdict.unaltered is None else "UNALTERED"
    yield [("good", word), f"  {found.name}  {counts}"]
    yield ["  head         ", f"{verdict.head}"]
    if verdict.unaltered is None:
        yield ["  unaltered    ", "not known: give the head that you kept elsewhere with --head"]
    elif verdict.head_seq is not None and verdict.head_seq < verdict.entries - 1:
        yield [
            "  kept head    ",
            f"is that of entry {verdict.head_seq:,}; {verdict.entries - 1 - verdict.head_seq:,} follow",
        ]
    yield ["  complete     ", "yes" if verdict.complete else f"no: {place}{verdict.message}"]
    if not verdict.complete and _durability(found) == "process":
        yield [
            "  its tail     ",
            "a power cut may have taken the last entries (durability: process); the death of its process takes none",
        ]
    if verdict.missing:
        yield [
            ("bad", "  missing      "),
            f"{len(verdict.missing):,} payloads that entries name are not in the file",
        ]
    if verdict.erased:
        yield [
            "  erased       ",
            f"{len(verdict.erased):,} payloads, on purpose; replay cannot serve their calls",
        ]
    if verdict.unreferenced:
        yield ["  unreferenced ", f"{len(verdict.unreferenced):,} payloads that no entry names"]
