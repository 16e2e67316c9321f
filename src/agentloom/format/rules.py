"""What entries may follow each other: the rules of docs/trace-format.md, Entries, as a state machine over entries."""

# The table at the end names the methods of the class above it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agentloom.format import callids, merkle
from agentloom.format.digests import NO_PREV
from agentloom.format.fields import HEX64, Broken, Entry, check_fields, looks_right
from agentloom.format.guards import is_list, is_map
from agentloom.format.limits import ENTRIES
from agentloom.format.runids import is_run_id

__all__ = ["AFTER_END", "KNOWN_FLAGS", "MAJOR", "Rules"]

MAJOR = 1
KNOWN_FLAGS: frozenset[str] = frozenset()
AFTER_END = frozenset({"erase", "seal", "tag", "flag", "note", "index", "retract"})
_VERSION = re.compile("([1-9][0-9]*)\\.(0|[1-9][0-9]*)")


class Rules:
    """Checks entries one by one, in order. ``entry`` raises ``Broken`` at the first that may not stand there."""

    def __init__(self) -> None:
        self.seq = 0
        self.prev = NO_PREV
        self.start: Entry = {}
        self.end: Entry | None = None
        self.gaps = False
        self.erased: dict[str, int] = {}
        self.digests: list[str] = []
        self.deliveries: dict[int, int] = {}  # delivery number -> seq
        self._calls: dict[str, tuple[int, int]] = {}  # call -> seq of its request, seq of its outcome or -1
        self._answers: list[tuple[int, str]] = []  # seq of an outcome, its call
        self._tree = merkle.Tree()  # over the first of the digests; seals may come after every entry
        self._epoch = 0

    def entry(self, entry: Entry, digest: str) -> None:
        """Take the next entry, whose digest is ``digest``."""
        right = looks_right(entry)
        seq: Any = entry.get("seq")
        kind: Any = entry.get("kind")
        if not right and (type(seq) is not int or type(kind) is not str or type(entry.get("at")) is not int):
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
            raise Broken("order.closed", f"{kind} entry after the end entry")
        if right or check_fields(entry, kind):
            check = _BY_KIND.get(kind)
            if check is not None:
                check(self, entry)
        self.digests.append(digest)
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
        check_fields(entry, "start")
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
        callids.check(call)
        self._calls[call] = (self.seq, -1)

    def _outcome(self, entry: Entry) -> None:
        requested, answered = self._open(entry["call"])
        if answered >= 0:
            raise Broken("call.answered", f"call {entry['call']} has two outcomes")
        self._calls[entry["call"]] = (requested, self.seq)
        self._answers.append((self.seq, entry["call"]))
        if "d" in entry:
            self._delivery(entry["d"])

    def _chunks(self, entry: Entry) -> None:
        if self._open(entry["call"])[1] >= 0:
            raise Broken("call.answered", f"chunks of call {entry['call']} after its outcome")
        for item in entry["items"]:
            if not is_list(item) or len(item) != 3 or any(type(number) is not int for number in item):
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
                if not is_map(totals) or totals.get(name, count) != count:
                    raise Broken("end.totals", f"totals.{name} is not {count}")
        self.end = entry

    def _resume(self, entry: Entry) -> None:
        if entry["epoch"] != self._epoch + 1:
            raise Broken("order.epoch", f"epoch {entry['epoch']} after epoch {self._epoch}")
        self._epoch += 1

    def _retract(self, entry: Entry) -> None:
        first = entry["from"]
        last = self.seq - 1 if self.end is None else self.end["seq"]  # behind the end nothing goes on
        if not 0 < first <= last:
            raise Broken("retract.range", f"cannot retract from entry {first}")
        self.end = None
        # All of these are in the order of entries: only what is taken back is looked at.
        while self.deliveries and next(reversed(self.deliveries.values())) >= first:
            self.deliveries.popitem()
        while self._calls and next(reversed(self._calls.values()))[0] >= first:
            self._calls.popitem()
        while self._answers and self._answers[-1][0] >= first:
            _, call = self._answers.pop()
            if call in self._calls:
                self._calls[call] = (self._calls[call][0], -1)

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
        for digest in self.digests[self._tree.count :]:
            self._tree.add(digest)
        if entry["root"] != self._tree.root():
            raise Broken("seal.root", "the root is not that of the entries before", integrity=True)

    def _gap(self, entry: Entry) -> None:
        self.gaps = True

    def _rehash(self, entry: Entry) -> None:
        raise Broken("version.digest", f"the trace goes on with digest {entry['digest']!r}", version=True)


_BY_KIND: dict[str, Callable[[Rules, Entry], None]] = {
    "request": Rules._request,
    "outcome": Rules._outcome,
    "chunks": Rules._chunks,
    "timer": Rules._delivered,
    "cancel": Rules._delivered,
    "turn": Rules._delivered,
    "tick": Rules._delivered,
    "end": Rules._end,
    "resume": Rules._resume,
    "retract": Rules._retract,
    "erase": Rules._erase,
    "seal": Rules._seal,
    "gap": Rules._gap,
    "rehash": Rules._rehash,
}
"""Kind -> what else holds for an entry of it. Not kept by each of them: a cycle would leave a whole trace to the
collector."""
