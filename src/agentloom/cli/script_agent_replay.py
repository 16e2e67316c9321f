"""Replaying an ``@agent`` function or a workflow in the child process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentloom.adapters import sdks
from agentloom.api.trace import Trace
from agentloom.cli.targets import agent_object, load_module

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results

__all__ = ["replay_agent"]


def replay_agent(job: dict[str, Any], results: Results, data: bytes, *, alone: bool) -> int:
    """Import the agent and replay the trace with it; effects outside host calls are refused by the replayer."""
    sdks.watch()
    recorded: str = job["module"] or ""
    module = load_module(job.get("path"), recorded or None, main=recorded == "__main__")
    agent = agent_object(module, job["object"])
    report = Trace(data).replay(check=False, agent=agent)
    code = report.exit_code(strict_noted=bool(job.get("strict_noted")))
    lines = report.render(int(job.get("width") or 100))
    facts: dict[str, Any] = {"network": "os" if alone else "python", "reads": []}
    results.send(done={"report": report.to_json() | facts, "lines": lines, "exit": code})
    return code
