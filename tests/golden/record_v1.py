"""Writes a golden trace of format 1, once: refuses to write one anew."""

from __future__ import annotations

import sys
from pathlib import Path

import agentloom
from agentloom.store import MemoryStore
from tests.golden.agents_v1 import AGENTS, INPUTS, Backend

FOLDER = Path(__file__).parent / "v1"


def main(name: str) -> None:
    path = FOLDER / f"replay-{name}.loom"
    if path.exists():
        raise SystemExit(f"{path.name} exists: a golden trace is never made anew")
    agentloom.set_backend(Backend())
    trace = AGENTS[name].run(
        INPUTS[name], seed=42, tags={"golden": "v1"}, conversation="golden", store=MemoryStore()
    )
    trace.save(path)
    print(f"{path.name}  {len(trace.calls)} calls  head {trace.head}")


if __name__ == "__main__":
    main(sys.argv[1])
