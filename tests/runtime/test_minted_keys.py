"""Ids minted afresh are in the key as they were sent, and are paired where requests are compared (docs/adr/0015)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import agentloom
import agentloom.sync
from agentloom import Trace
from agentloom.store import MemoryStore

IDS = ["call_aaaaaaaaaaaa", "call_bbbbbbbbbbbb"]


class Backend:
    """Answers alike."""

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"content": "ok"}


@agentloom.agent(guard="off")
def asks() -> str:
    """Sends a history with the ids of its process."""
    calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in IDS]
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": one, "content": one_said}
            for one, one_said in zip(IDS, "ab", strict=True)
        ),
    ]
    return agentloom.sync.model("m", history).text


def recorded(monkeypatch: pytest.MonkeyPatch, *ids: str) -> Trace:
    monkeypatch.setattr(f"{__name__}.IDS", list(ids))
    return asks.run(store=MemoryStore())


def test_other_ids_are_another_key_and_no_other_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    before = agentloom.set_backend(Backend())  # type: ignore[arg-type]
    try:
        trace = recorded(monkeypatch, "call_aaaaaaaaaaaa", "call_bbbbbbbbbbbb")
        monkeypatch.setattr(f"{__name__}.IDS", ["call_cccccccccccc", "call_dddddddddddd"])
        report = trace.replay(check=False)
        assert (report.ok, report.counts.noted) == (True, 1)
        monkeypatch.setattr(f"{__name__}.IDS", ["call_cccccccccccc", "call_cccccccccccc"])
        assert trace.replay(check=False).verdict == "diverged"  # two results of one call
    finally:
        agentloom.set_backend(before)
