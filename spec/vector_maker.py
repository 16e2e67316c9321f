"""What the vectors are made with: a trace builder with fixed entropy, and edits of finished traces."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentloom.format.blobs import BlobWriter
from agentloom.format.digests import entry_digest, request_key
from agentloom.format.journal import JournalWriter
from agentloom.format.runids import new_run_id
from agentloom.format.values import Tree

START = 1_700_000_000_000_000_000  # nanoseconds since 1970


@dataclass(slots=True)
class Vector:
    """A file with the verdicts that it must give. ``line`` is that of the first fault, or of what is incomplete."""

    file: str
    about: str
    data: bytes
    code: str | None = None
    line: int | None = None
    complete: bool | None = None  # None: as ``code`` says
    head: str | None = None
    unaltered: bool | None = None
    more: dict[str, int] = field(default_factory=dict[str, int])  # counts of missing, unreferenced, erased

    @property
    def consistent(self) -> bool:
        """Valid vectors are those whose chain and blobs hold."""
        return self.file.startswith("valid/")

    def row(self) -> dict[str, Any]:
        """The vector's row in the index."""
        row: dict[str, Any] = {"file": self.file, "about": self.about, "consistent": self.consistent}
        row["complete"] = self.consistent and self.code is None if self.complete is None else self.complete
        if self.head is not None:
            row |= {"head": self.head, "unaltered": self.unaltered}
        return row | {"code": self.code, "line": self.line} | self.more


class Maker:
    """Builds a trace append by append. ``start`` first; ``data`` is the file so far."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.blobs = BlobWriter(self.random.randbytes)
        self.journal = JournalWriter()
        self.nonce = self.random.randbytes(32)
        self.data = b""
        self.at = START
        self.d = 0

    def put(self, tree: Tree, series: str | None = None) -> str:
        return self.blobs.put(tree, series=series)

    def start(self, **changes: Tree) -> Maker:
        run = new_run_id(START // 1_000_000, self.random.randbytes(10))
        fields: dict[str, Tree] = {
            "format": "loom",
            "version": "1.0",
            "run": run,
            "digest": "sha256",
            "flags": [],
            "keys": 1,
            "agent": "support",
            "entry": "support:agent",
            "code": self.put({"modules": {"support": "async def agent(question): ...\n"}}),
            "env": self.put({"python": "3.11.7", "platform": "linux"}),
            "seed": 42,
            "input": self.put({"args": ["refund order 812"], "kwargs": {}}),
            "policy": changes.get("policy") or self.put({"durability": "process"}),
            "nonce": self.blobs.put_nonce(self.nonce),
            "clock": {"start": START, "resolution": 1},
            "epoch": 1,
        }
        fields |= changes
        line = self.journal.entry("start", {k: v for k, v in fields.items() if v != "absent"}, at=self.at)
        self.data += line + self.blobs.take()
        return self

    def entry(self, kind: str, **fields: Tree) -> Maker:
        self.at += 1_000_000
        pending = self.blobs.take()
        self.journal.skip(len(pending))
        self.data += pending + self.journal.entry(kind, fields, at=self.at)
        return self

    def request(self, call: str, type_: str, name: str, request: dict[str, Tree], **more: Tree) -> Maker:
        series = f"{type_}:{name}" if type_ == "model" else None
        fields: dict[str, Tree] = {
            "call": call,
            "type": type_,
            "name": name,
            "key": request_key(self.nonce, "plain/1", request),
            "profile": "plain/1",
            "req": self.put(request, series),
            "src": "support.py:9 agent",
        }
        return self.entry("request", **fields | more)

    def outcome(self, call: str, value: Tree, status: str = "ok", **more: Tree) -> Maker:
        self.d += 1
        fields: dict[str, Tree] = {"call": call, "d": self.d, "vt": self.d * 1000, "status": status}
        fields["val" if status == "ok" else "err"] = self.put(value)
        return self.entry("outcome", **fields | more)

    def end(self, **changes: Tree) -> Maker:
        return self.entry(
            "end", **{"status": "completed", "val": self.put("Refunded order 812: $40.00")} | changes
        )


def small(seed: str = "small", **start: Tree) -> Maker:
    """Two model calls and a tool call, not ended."""
    maker = Maker(seed).start(**start)
    messages: list[Tree] = [
        {"role": "system", "content": "You look up orders and refund them. " + "Be careful. " * 16},
        {"role": "user", "content": "refund order 812"},
    ]
    maker.request("root/agent#0", "model", "gpt-4o", {"model": "gpt-4o", "messages": list(messages)})
    answer: Tree = {"role": "assistant", "content": "", "tool": {"name": "lookup_order", "order": 812}}
    maker.outcome("root/agent#0", answer, usage={"input": 62, "output": 18}, dur=300_000_000)
    maker.request("root/agent#1", "tool", "lookup_order", {"args": [812]}, effect="read")
    maker.outcome("root/agent#1", {"total": 40, "paid": True})
    messages += [answer, {"role": "tool", "content": '{"total": 40, "paid": true}'}]
    maker.request("root/agent#2", "model", "gpt-4o", {"model": "gpt-4o", "messages": list(messages)})
    return maker.outcome("root/agent#2", {"role": "assistant", "content": "Refunded order 812: $40.00"})


def finished(seed: str = "small", **start: Tree) -> bytes:
    """``small`` with its end entry."""
    return small(seed, **start).end(totals={"calls": 3, "deliveries": 3}).data


def lines(data: bytes) -> list[bytes]:
    """The lines of a whole file, without newlines."""
    return data.split(b"\n")[:-1]


def join(parts: list[bytes]) -> bytes:
    """Lines to a file."""
    return b"".join(part + b"\n" for part in parts)


def number_of(data: bytes, test: Callable[[bytes], bool]) -> int:
    """The number, from 1, of the first line that ``test`` accepts."""
    return next(number for number, line in enumerate(lines(data), 1) if test(line))


def entry_line(data: bytes, kind: str, nth: int = 0) -> int:
    """The number of the nth entry of that kind."""
    mark = f'"kind":"{kind}"'.encode()
    return [n for n, line in enumerate(lines(data), 1) if line.startswith(b'{"seq":') and mark in line][nth]


def edited(data: bytes, number: int, edit: Callable[[bytes], bytes]) -> bytes:
    """The file with one line changed and nothing else."""
    parts = lines(data)
    parts[number - 1] = edit(parts[number - 1])
    return join(parts)


def rechained(data: bytes, number: int, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with one entry changed and every digest after it made anew: what a forger would do."""
    parts = lines(data)
    head = "0" * 64
    for index, part in enumerate(parts):
        if part.startswith(b'{"seq":'):
            entry = json.loads(part)
            entry["prev"] = head
            if index == number - 1:
                edit(entry)
            parts[index] = json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode()
            head = entry_digest(parts[index])
    return join(parts)


def head_of(data: bytes, number: int | None = None) -> str:
    """The digest of the entry on that line, or of the last entry."""
    entries = [line for line in lines(data)[:number] if line.startswith(b'{"seq":')]
    return entry_digest(entries[-1])


def blob_line(ident: str, salt: bytes, form: str, data: bytes) -> bytes:
    """A blob line with whatever it is told."""
    return b'{"blob":"%b","salt":"%b","form":"%b","data":%b}' % (
        ident.encode(),
        salt.hex().encode(),
        form.encode(),
        data,
    )
