"""The file that workload W leaves: its size, its growth, and whether every request comes back byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from agentloom import Trace
from agentloom.store import read_file
from benchmarks.agent import workload
from benchmarks.agent.agents import sync_agent
from benchmarks.bounds import beside

__all__ = ["lines", "measure"]


def rebuilt_exactly(trace: Trace, turns: int) -> int:
    """How many of the model requests in the file equal, byte for byte, what the agent sent."""
    sent: list[str] = []

    def ask(messages: list[workload.Message]) -> workload.Message:
        sent.append(json.dumps({"model": "m", "messages": messages}))
        answer = workload.model(messages)
        return {"role": "assistant", "content": answer["content"], "tool_calls": answer["tool_calls"]}

    workload.loop(ask, workload.tool, turns)
    stored = [json.dumps(call.request) for call in trace.calls if call.kind == "model"]
    return sum(1 for a, b in zip(sent, stored, strict=True) if a == b)


def measure(turns: int, folder: Path) -> dict[str, float]:
    """File sizes of one recorded run, of one four times as long, and of the compressed file."""
    short = sync_agent.run(turns, store=folder / "short")
    long = sync_agent.run(turns * 4, store=folder / "long")
    short.save(folder / "short.loom")
    short.save(folder / "short.loom.zst")
    long.save(folder / "long.loom")
    raw = len(read_file(folder / "short.loom"))
    return {
        "raw_bytes": raw,
        "zst_bytes": (folder / "short.loom.zst").stat().st_size,
        "growth": (folder / "long.loom").stat().st_size / raw,
        "requests": turns,
        "requests_rebuilt": rebuilt_exactly(short, turns),
    }


def lines(size: Mapping[str, float]) -> list[str]:
    """What was measured, in words."""
    return [
        f"file {size['raw_bytes']:,.0f} bytes raw {beside('raw_bytes')}",
        f"     {size['zst_bytes']:,.0f} bytes as .loom.zst {beside('zst_bytes')}",
        f"     {size['growth']:.2f}x for 4x turns {beside('growth')}",
        f"     {size['requests_rebuilt']:.0f} of {size['requests']:.0f} requests rebuilt byte for byte",
    ]
