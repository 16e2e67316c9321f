"""What a verdict says besides yes and no: where, what, and how much."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import FormatError, IntegrityError, UnsupportedVersion
from agentloom.format.digests import entry_digest
from agentloom.format.journal import Journal, Verdict, check
from tests.spec.test_vectors import CHECKED_LATER, IN_ENTRIES, ROWS, SPECIFICATION, data_of

TABLE = SPECIFICATION.partition("## 14. Errors")[2].partition("## 15.")[0].splitlines()
NAMED = {  # what a message names, of those that name something
    "after-the-end": "request entry",
    "big-integer": "18446744073709551616 ",
    "blob-changed": "blob 24fd4feafc60",
    "blob-doubled": "blob 24fd4feafc60 stands",
    "blob-duplicate-key": "'a'",
    "blob-moved": "blob 24fd4feafc60 belongs to entry 2",
    "blob-too-deep": "210 levels",
    "blobs-exchanged": "blob 0cb97adf5921 is",
    "base64-spelling": "a bytes blob",
    "call-id-escape": "'%41gent' is not the one spelling of the name 'Agent'",
    "call-id-long": "65537 characters; the limit is 65536",
    "call-id-syntax": "'root/agent' is not a call id",
    "call-is-a-number": "request entry needs call (str)",
    "chunks-after-outcome": "root/agent#2",
    "delivery-missing": "delivery 4",
    "delivery-twice": "delivery 3",
    "end-status": "'done' is no status of",
    "end-twice": "end entry",
    "entries-swapped": "entry 2 stands where entry 1 belongs",
    "entry-status": "'no' is no status of",
    "epoch-older": "epoch 1 after epoch 1",
    "erased-but-there": "blob bf3c45e1d48f was",
    "flag-as-true": "outcome entry needs vt (int)",
    "low-integer": "-9223372036854775809 ",
    "must-understand": "'time-travel'",
    "newer-major": "version 2.0; this reader knows 1",
    "nonce-short": "31 bytes in a nonce blob",
    "outcome-twice": "root/agent#2",
    "outcome-unknown": "root/agent#9",
    "rehash": "'sha3-512'",
    "req-is-text": "req of",
    "request-twice": "root/agent#2",
    "request-without-key": "request entry needs key (str)",
    "retract-all": "entry 0",
    "run-id": "'7f3a'",
    "seal-count": "a seal over 2 entries stands after 8",
    "start-without-nonce": "start entry needs nonce (str)",
    "totals": "totals.calls is not 3",
    "version-text": "'1'",
    "looks-like-an-id": "payload 000000000000 is",
    "missing-blob": "payload 24fd4feafc60 is",
    "torn-append": "168 bytes",
    "torn-line": "400 bytes",
}


def verdict_of(row: dict[str, Any]) -> tuple[bytes, Verdict]:
    data = data_of(row)
    return data, check(data, head=row.get("head"))


@pytest.mark.parametrize("row", [row for row in ROWS if row["code"]], ids=lambda row: row["file"])
def test_a_fault_has_a_place_and_names_what_it_is_about(row: dict[str, Any]) -> None:
    data, verdict = verdict_of(row)
    assert verdict.line is not None
    assert verdict.offset == sum(len(line) for line in data.splitlines(keepends=True)[: verdict.line - 1])
    name = row["file"].partition("/")[2].removesuffix(".loom")
    assert NAMED.get(name, "") in verdict.message
    assert len(verdict.message.split()) > 3
    assert "[" + row["code"] not in verdict.message  # the code stands beside it


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_what_holds_is_counted(row: dict[str, Any]) -> None:
    data, verdict = verdict_of(row)
    lines = data.split(b"\n")[:-1]
    if not verdict.consistent and (row["code"] not in CHECKED_LATER or row["file"] in IN_ENTRIES):
        lines = lines[: (verdict.line or 1) - 1]  # no more was read
    whole = [line for line in lines if not line.startswith(b"\0")]  # zeros: what a power cut leaves
    entries = [line for line in whole if line.startswith(b'{"seq":')]
    assert (verdict.entries, verdict.blobs) == (len(entries), len(whole) - len(entries))
    assert verdict.calls == sum(b'"kind":"request"' in line for line in entries)
    assert verdict.head == (entry_digest(entries[-1]) if entries else "0" * 64)


UNREADABLE = [
    row
    for row in ROWS
    if not row["consistent"] and (row["code"] not in CHECKED_LATER or row["file"] in IN_ENTRIES)
]


@pytest.mark.parametrize("row", UNREADABLE, ids=lambda row: row["file"])
def test_the_error_of_a_reader_says_what_the_verdict_says(row: dict[str, Any]) -> None:
    data, verdict = verdict_of(row)
    with pytest.raises((FormatError, IntegrityError)) as caught:
        Journal.parse(data)
    error = caught.value
    assert (error.fields["code"], error.fields["line"]) == (verdict.code, verdict.line)
    assert error.fields["offset"] == verdict.offset
    assert str(error).count(f"[{verdict.code}]") == 1
    assert verdict.message in str(error)
    (kind,) = (line.split("|")[2].strip() for line in TABLE if f"`{verdict.code}`" in line)
    assert (
        type(error)
        is {"format": FormatError, "version": UnsupportedVersion, "integrity": IntegrityError}[kind]
    )
