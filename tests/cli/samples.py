"""Traces made by hand, byte by byte the same each time: what commands read, without running an agent."""

from __future__ import annotations

import itertools
from typing import Any

from agentloom.format.blobs import BlobWriter
from agentloom.format.journal import JournalWriter
from agentloom.format.runids import new_run_id

START = 1_796_000_000_000_000_000  # 2026-11-30T00:53:20Z
HISTORY = [
    {"role": "system", "content": "Refund when paid."},
    {"role": "user", "content": "refund order 812"},
]


class Maker:
    """Builds one trace entry by entry."""

    def __init__(
        self, number: int = 1, *, agent: str = "support", tags: dict[str, str] | None = None
    ) -> None:
        salts = itertools.count(number * 1_000_000)
        self.blobs = BlobWriter(lambda count: next(salts).to_bytes(count, "big"))
        self.journal = JournalWriter()
        self.run = new_run_id(START // 1_000_000 + number, number.to_bytes(10, "big"))
        self.at = START + number * 10**9
        self.delivered = 0
        fields: dict[str, Any] = {
            "format": "loom", "version": "1.0", "run": self.run, "digest": "sha256", "flags": [], "keys": 1,
            "agent": agent, "entry": f"{agent}:{agent}", "seed": 42, "epoch": 1,
            "clock": {"start": START, "resolution": 1},
            "code": self.blobs.put({"modules": {}, "packages": ["openai==3.57.0"]}),
            "env": self.blobs.put({"python": "3.11.7"}),
            "input": self.blobs.put({"args": ["refund order 812"], "kwargs": {}}),
            "policy": self.blobs.put({"guard": "off"}),
            "nonce": self.blobs.put_nonce(bytes(32)),
        }  # fmt: skip
        if tags:
            fields["tags"] = self.blobs.put(dict(tags))
        line = self.journal.entry("start", fields, at=self.at)
        pending = self.blobs.take()
        self.journal.skip(len(pending))
        self.data = line + pending

    def entry(self, kind: str, **fields: Any) -> None:
        self.at += 1_000_000
        pending = self.blobs.take()
        self.journal.skip(len(pending))
        self.data += pending + self.journal.entry(kind, fields, at=self.at)

    def call(
        self, number: int, kind: str, name: str, request: Any, outcome: Any, *, status: str = "ok", line: int = 9,
        **more: Any,
    ) -> None:  # fmt: skip
        """A request and its outcome; ``more``: ``effect`` of the request, ``usage`` of the outcome."""
        call = f"root/support#{number}"
        asked = {"effect": more["effect"]} if "effect" in more else {}
        self.entry(
            "request", call=call, type=kind, name=name, key=f"{number:032x}", profile=f"{kind}/1",
            req=self.blobs.put(request), src=f"agent.py:{line} support", **asked,
        )  # fmt: skip
        if status == "none":
            return
        self.delivered += 1
        result = (
            {} if status == "cancelled" else {"err" if status == "error" else "val": self.blobs.put(outcome)}
        )
        usage = {"usage": more["usage"]} if "usage" in more else {}
        self.entry(
            "outcome",
            call=call,
            d=self.delivered,
            vt=self.delivered * 10**6,
            status=status,
            dur=31_000_000,
            **result,
            **usage,
        )

    def end(self, output: Any = "Refunded order 812: $40.00", status: str = "completed") -> bytes:
        name = "val" if status == "completed" else "err"
        calls = {"calls": self.delivered, "deliveries": self.delivered}
        self.entry("end", status=status, totals=calls, **{name: self.blobs.put(output)})
        return self.data


def refund(number: int = 1, *, tags: dict[str, str] | None = None, end: bool = True) -> Maker:
    """The refund agent of the guide: three model calls, two tools, the second of which writes."""
    run = Maker(number, tags=tags)

    def asked(name: str, arguments: str) -> dict[str, object]:
        return {
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": name, "arguments": arguments}}],
        }

    body = {
        "model": "gpt-4o",
        "messages": HISTORY,
        "tools": [{"name": "lookup_order"}, {"name": "issue_refund"}],
    }
    usage = {"input": 612, "output": 18}
    run.call(0, "model", "gpt-4o", body, asked("lookup_order", "812"), line=22, usage=usage)
    run.call(1, "tool", "lookup_order", {"args": {"order": 812}}, {"total": 40, "paid": True}, effect="read")
    run.call(2, "model", "gpt-4o", body, asked("issue_refund", "812, 40"), line=22, usage=usage)
    run.call(3, "tool", "issue_refund", {"args": {"order": 812, "total": 40}}, "ok", line=14, effect="write")
    run.call(4, "model", "gpt-4o", body, {"content": "Refunded order 812: $40.00"}, line=22, usage=usage)
    if end:
        run.end()
    return run


def long(calls: int) -> bytes:
    """A run of many tool calls, every tenth of which failed."""
    run = Maker(7)
    for number in range(calls):
        error: dict[str, Any] = {
            "$error": {
                "type": "builtins:ValueError",
                "args": ["no"],
                "attrs": {},
                "message": "no",
                "cause": None,
            }
        }
        failed = number % 10 == 5
        run.call(
            number, "tool", "lookup", {"args": {"n": number}}, error if failed else f"found {number}",
            status="error" if failed else "ok",
        )  # fmt: skip
    return run.end("done")
