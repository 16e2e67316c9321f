"""The forgers forge well: what they make is caught for the reason that the demo names, and for no other."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from agentloom.cli.demo_forge import change_byte, check_record, rewrite
from agentloom.errors import TargetError
from agentloom.format.blobs import BlobWriter
from agentloom.format.checking import check
from agentloom.format.journal import Journal, JournalWriter

if TYPE_CHECKING:
    from pathlib import Path

    from agentloom.format.canonical import Tree

RUN = "01k8z6w3c0f2q4r6s8t0v2w4y6"


def trace(deleted: int = 4031) -> bytes:
    """A finished run of one tool call, as the engine writes it."""
    blobs, journal = BlobWriter(random.Random(1).randbytes), JournalWriter()
    names: dict[str, Tree] = {
        name: blobs.put({name: ["x" * 90]}) for name in ("code", "env", "input", "policy")
    }
    start: dict[str, Tree] = {
        "format": "loom", "version": "1.0", "run": RUN, "digest": "sha256", "flags": [], "keys": 1,
        "agent": "cleanup", "entry": "agent:cleanup", "seed": None, **names,
        "nonce": blobs.put_nonce(b"n" * 32), "clock": {"start": 0, "resolution": 1}, "epoch": 1,
    }  # fmt: skip
    out = journal.entry("start", start, at=1) + blobs.take()
    request = blobs.put({"args": {"target": "production", "filter": "inactive > 90 days"}})
    fields: dict[str, Tree] = {
        "call": "root/cleanup#1", "type": "tool", "name": "delete_accounts", "key": "0" * 32, "profile": "tool/1",
        "req": request, "effect": "write",
    }  # fmt: skip
    out += blobs.take() + journal.entry("request", fields, at=2)
    value = blobs.put({"target": "production", "deleted": deleted})
    outcome: dict[str, Tree] = {"call": "root/cleanup#1", "d": 1, "vt": 5, "status": "ok", "val": value}
    out += blobs.take() + journal.entry("outcome", outcome, at=3)
    output = blobs.put(f"deleted {deleted:,} accounts in production")
    end: dict[str, Tree] = {"status": "completed", "val": output, "totals": {"calls": 1, "deliveries": 1}}
    return out + blobs.take() + journal.entry("end", end, at=4)


def test_the_trace_itself_holds() -> None:
    assert check(trace()).ok, check(trace())


def test_a_changed_byte_is_found_on_its_line() -> None:
    data = trace()
    forged, line = change_byte(data, b'"deleted":4031', b'"deleted":4032')
    assert sum(a != b for a, b in zip(data, forged, strict=True)) == 1
    verdict = check(forged)
    assert not verdict.consistent
    assert verdict.line == line
    assert b"4031" in data.splitlines()[line - 1]


def test_a_rewritten_trace_is_consistent_but_has_another_head() -> None:
    data = trace()
    head = check(data).head
    forged = rewrite(data, {b'"production","deleted":4031': b'"staging","deleted":12', b"4,031": b"12"})
    verdict = check(forged, head=head)
    assert verdict.consistent, verdict
    assert verdict.complete
    assert verdict.unaltered is False
    assert (verdict.code, check(data, head=head).unaltered) == ("head.mismatch", True)
    journal = Journal.parse(forged)
    assert journal.tree(str(journal.entries[-1]["val"])) == "deleted 12 accounts in production"
    assert journal.entries[0]["nonce"] == Journal.parse(data).entries[0]["nonce"]


def test_rewriting_nothing_gives_the_same_bytes() -> None:
    assert rewrite(trace(), {}) == trace()


def test_an_edit_that_fits_nowhere_is_an_error() -> None:
    with pytest.raises(TargetError, match="does not hold b'no such text'"):
        rewrite(trace(), {b"no such text": b""})
    with pytest.raises(TargetError, match="nothing to change"):
        change_byte(trace(), b"no such text", b"no such te*t")


@pytest.mark.parametrize("deleted", [4031, 4039, 9])
def test_check_record_tells_the_three_apart_and_leaves_the_forgeries(deleted: int, tmp_path: Path) -> None:
    data = trace(deleted)
    checked = check_record(data, check(data).head, deleted, tmp_path)
    assert checked.original.unaltered
    assert checked.original.complete
    assert not checked.byte.consistent
    assert checked.byte.line == checked.line
    assert checked.rewritten.consistent
    assert checked.rewritten.unaltered is False
    assert [path.name for path in checked.files] == ["one-byte.loom", "rewritten.loom"]
    assert checked.files[1].read_bytes().count(b"accounts in staging") == 1
