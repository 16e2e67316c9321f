"""What entries may follow each other: the rules of docs/trace-format.md, Entries, as a state machine over entries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agentloom.format.callids import parse
from agentloom.format.digests import NO_PREV
from agentloom.format.limits import ENTRIES
from agentloom.format.merkle import Tree as MerkleTree
from agentloom.format.runids import is_run_id

Entry = dict[str, Any]

MAJOR = 1
KNOWN_FLAGS: frozenset[str] = frozenset()
AFTER_END = frozenset({"erase", "seal", "tag", "flag", "note", "index"})
HEX64 = re.compile("[0-9a-f]{64}")
_VERSION = re.compile("([1-9][0-9]*)\\.(0|[1-9][0-9]*)")

# Field -> type, of the fields that each kind must have. A type in a tuple with None may be null.
_REQUIRED: dict[str, dict[str, Any]] = {
    "start": {
        "format": str,
        "version": str,
        "run": str,
        "digest": str,
        "flags": list,
        "keys": int,
        "agent": str,
        "code": "blob",
        "env": "blob",
        "input": "blob",
        "policy": "blob",
        "nonce": "blob",
        "clock": dict,
        "epoch": int,
    },
    "request": {"call": str, "type": str, "name": str, "key": str, "profile": str, "req": "blob"},
    "outcome": {"call": str, "vt": int, "status": str},
    "chunks": {"call": str, "items": list, "val": "blob"},
    "timer": {"d": int, "vt": int},
    "cancel": {"d": int, "vt": int},
    "turn": {"d": int, "vt": int},
    "state": {"call": str, "name": str, "key": str, "val": "blob"},
    "note": {},
    "flag": {},
    "tag": {},
    "gap": {"why": str},
    "end": {"status": str},
    "suspend": {"asks": list},
    "answer": {"ask": str, "val": "blob"},
    "resume": {"epoch": int},
    "retract": {"from": int},
    "erase": {"blobs": list, "val": "blob"},
    "seal": {"count": int, "root": str},
    "index": {"offset": int, "last": (int, None)},
    "segment": {"n": int},
    "rehash": {"digest": str, "head": str},
}
KINDS = frozenset(_REQUIRED)
# Optional fields of these names are blob ids wherever they stand.
_BLOB_FIELDS = ("code", "env", "input", "policy", "tags", "conversation", "nonce", "req", "val", "err")
_STATUS = {"outcome": {"ok", "error", "cancelled", "closed"}, "end": {"completed", "failed", "cancelled"}}
# Fields of these names never name a blob, whatever they look like.
NOT_REFERENCES = frozenset(
    (
        *(
            "seq",
            "prev",
            "at",
            "kind",
            "call",
            "type",
            "name",
            "key",
            "profile",
            "src",
            "parent",
            "effect",
            "run",
        ),
        *("agent", "entry", "format", "version", "digest", "flags", "head", "root", "blobs", "ask"),
    )
)


class Broken(Exception):
    """A rule that does not hold; ``integrity`` tells a broken chain or digest from malformed input."""

    def __init__(self, code: str, message: str, *, integrity: bool = False, version: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.integrity = integrity
        self.version = version


class Rules:
    """Checks entries one by one, in order. ``entry`` raises ``Broken`` at the first that may not stand there."""

    def __init__(self) -> None:
        self.seq = 0
        self.prev = NO_PREV
        self.start: Entry = {}
        self.end: Entry | None = None
        self.gaps = 0
        self.erased: dict[str, int] = {}
        self.merkle = MerkleTree()
        self.deliveries: dict[int, int] = {}  # delivery number -> seq
        self._calls: dict[str, tuple[int, int]] = {}  # call -> seq of its request, seq of its outcome or -1
        self._epoch = 0
        self._by_kind: dict[str, Callable[[Entry], None]] = {
            "request": self._request,
            "outcome": self._outcome,
            "chunks": self._chunks,
            "timer": self._delivered,
            "cancel": self._delivered,
            "turn": self._delivered,
            "end": self._end,
            "resume": self._resume,
            "retract": self._retract,
            "erase": self._erase,
            "seal": self._seal,
            "gap": self._gap,
            "rehash": self._rehash,
        }

    def entry(self, entry: Entry, digest: str) -> None:
        """Take the next entry, whose digest is ``digest``."""
        seq, kind = entry.get("seq"), entry.get("kind")
        if type(seq) is not int or type(kind) is not str or type(entry.get("at")) is not int:
            raise Broken("entry.field", "an entry needs seq (integer), prev, at (integer) and kind (text)")
        if seq == 0 and self.seq == 0:
            self._start(entry)
        if seq != self.seq or seq >= ENTRIES:
            raise Broken("entry.seq", f"entry {seq} stands where entry {self.seq} belongs", integrity=True)
        if entry.get("prev") != self.prev:
            raise Broken("chain.prev", "prev is not the digest of the entry before", integrity=True)
        if seq and kind == "start":
            raise Broken("order.start", "a second start entry")
        if self.end is not None and kind not in AFTER_END:
            raise Broken("order.closed", f"a {kind} entry after the end entry")
        required = _REQUIRED.get(kind)
        if required is not None:
            _check_fields(entry, kind, required)
            check = self._by_kind.get(kind)
            if check is not None:
                check(entry)
        self.merkle.add(digest)
        self.prev = digest
        self.seq += 1

    def missing_delivery(self) -> int | None:
        """The first delivery number that is not there although a higher one is."""
        count = len(self.deliveries)
        if max(self.deliveries, default=0) == count:
            return None
        return next(d for d in range(1, count + 2) if d not in self.deliveries)

    def _start(self, entry: Entry) -> None:
        if entry["kind"] == "segment":
            raise Broken("segment.alone", "a later segment of a run; join the segments first", version=True)
        if entry["kind"] != "start" or entry.get("format") != "loom":
            raise Broken("file.foreign", "the first line is not a start entry of format loom")
        version = entry.get("version")
        match = _VERSION.fullmatch(version) if type(version) is str else None
        if match is None:
            raise Broken("entry.field", f"version {version!r} is not major.minor")
        if int(match[1]) > MAJOR:
            raise Broken(
                "version.major", f"format version {version}; this reader knows {MAJOR}", version=True
            )
        _check_fields(entry, "start", _REQUIRED["start"])
        unknown = [flag for flag in entry["flags"] if flag not in KNOWN_FLAGS]
        if unknown:
            raise Broken(
                "version.flag", f"the trace needs {unknown[0]!r}, which is not known here", version=True
            )
        if entry["digest"] != "sha256" or entry["keys"] != 1:
            raise Broken("version.digest", "a digest or key algorithm that is not known here", version=True)
        if not is_run_id(entry["run"]):
            raise Broken("entry.field", f"{entry['run']!r} is not a run id")
        self._epoch = entry["epoch"]
        self.start = entry

    def _request(self, entry: Entry) -> None:
        call = entry["call"]
        if call in self._calls:
            raise Broken("call.duplicate", f"call {call} is requested twice")
        parse(call)
        self._calls[call] = (self.seq, -1)

    def _outcome(self, entry: Entry) -> None:
        requested, answered = self._open(entry["call"])
        if answered >= 0:
            raise Broken("call.answered", f"call {entry['call']} has two outcomes")
        self._calls[entry["call"]] = (requested, self.seq)
        if "d" in entry:
            self._delivery(entry["d"])

    def _chunks(self, entry: Entry) -> None:
        if self._open(entry["call"])[1] >= 0:
            raise Broken("call.answered", f"chunks of call {entry['call']} after its outcome")
        for item in entry["items"]:
            if type(item) is not list or len(item) != 3 or any(type(number) is not int for number in item):
                raise Broken("entry.field", "a chunk item is [d, vt, offset]")
            self._delivery(item[0])

    def _open(self, call: str) -> tuple[int, int]:
        known = self._calls.get(call)
        if known is None:
            raise Broken("call.unknown", f"nothing requested call {call}")
        return known

    def _delivered(self, entry: Entry) -> None:
        self._delivery(entry["d"])

    def _delivery(self, d: object) -> None:
        if type(d) is not int or d < 1:
            raise Broken("entry.field", "a delivery number is an integer from 1")
        if d in self.deliveries:
            raise Broken("order.delivery", f"delivery {d} happens twice")
        self.deliveries[d] = self.seq

    def _end(self, entry: Entry) -> None:
        missing = self.missing_delivery()
        if missing is not None:
            raise Broken("order.delivery", f"delivery {missing} never happened")
        totals = entry.get("totals")
        if totals is not None:
            found = {"calls": len(self._calls), "deliveries": len(self.deliveries)}
            for name, count in found.items():
                if type(totals) is not dict or totals.get(name, count) != count:
                    raise Broken("end.totals", f"totals.{name} is not {count}")
        self.end = entry

    def _resume(self, entry: Entry) -> None:
        if entry["epoch"] != self._epoch + 1:
            raise Broken("order.epoch", f"epoch {entry['epoch']} after epoch {self._epoch}")
        self._epoch += 1

    def _retract(self, entry: Entry) -> None:
        first = entry["from"]
        if not 0 < first < self.seq:
            raise Broken("retract.range", f"cannot retract from entry {first}")
        self.deliveries = {d: seq for d, seq in self.deliveries.items() if seq < first}
        self._calls = {
            call: (requested, answered if answered < first else -1)
            for call, (requested, answered) in self._calls.items()
            if requested < first
        }

    def _erase(self, entry: Entry) -> None:
        for blob in entry["blobs"]:
            if type(blob) is not str or HEX64.fullmatch(blob) is None:
                raise Broken("entry.field", "erase names blobs by their ids")
            self.erased.setdefault(blob, self.seq)
        if self.start.get("nonce") not in self.erased:
            raise Broken("erase.nonce", "a payload was erased but the key nonce was not")

    def _seal(self, entry: Entry) -> None:
        if entry["count"] != self.seq:
            raise Broken(
                "seal.count", f"a seal over {entry['count']} entries stands after {self.seq}", integrity=True
            )
        if entry["root"] != self.merkle.root():
            raise Broken("seal.root", "the root is not that of the entries before", integrity=True)

    def _gap(self, entry: Entry) -> None:
        self.gaps += 1

    def _rehash(self, entry: Entry) -> None:
        raise Broken("version.digest", f"the trace goes on with digest {entry['digest']!r}", version=True)


def _check_fields(entry: Entry, kind: str, required: dict[str, Any]) -> None:
    for name, wanted in required.items():
        value = entry.get(name)
        if wanted == "blob":
            continue
        kinds: tuple[Any, ...] = wanted if type(wanted) is tuple else (wanted,)
        if type(value) not in kinds and not (value is None and None in kinds and name in entry):
            raise Broken("entry.field", f"a {kind} entry needs {name} ({kinds[0].__name__})")
    for name in _BLOB_FIELDS:
        if name in entry or required.get(name) == "blob":
            value = entry.get(name)
            if type(value) is not str or HEX64.fullmatch(value) is None:
                raise Broken("entry.field", f"{name} of a {kind} entry is not a blob id")
    allowed = _STATUS.get(kind)
    if allowed is not None and entry["status"] not in allowed:
        raise Broken("entry.field", f"status {entry['status']!r} of a {kind} entry")


def references(entry: Entry) -> list[str]:
    """The blob ids that an entry names, in the order of its fields."""
    found: list[str] = []
    for name, value in entry.items():
        if name not in NOT_REFERENCES:
            _collect(value, found)
    return found


def _collect(value: Any, found: list[str]) -> None:
    if type(value) is str:
        if len(value) == 64 and HEX64.fullmatch(value):
            found.append(value)
    elif type(value) is list:
        for item in value:
            _collect(item, found)
    elif type(value) is dict:
        for name, item in value.items():
            if name not in NOT_REFERENCES:
                _collect(item, found)
