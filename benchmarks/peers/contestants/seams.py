"""Recorders that wrap the functions of the model and of the tool, as agentloom's own ``model`` and ``tool`` do."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Any

from benchmarks.agent import workload
from benchmarks.agent.workload import Message
from benchmarks.peers.contestants.base import Contestant

__all__ = ["AgentCassette", "AgentOS", "AgentRewind", "AgentVCR"]


class AgentCassette(Contestant):
    """Intercepted functions; replay is strict."""

    def __init__(self) -> None:
        self.package: Any = importlib.import_module("agentcassette")
        self.model = self.package.intercept(workload.model, kind="llm", name="model")
        self.tool = self.package.intercept(workload.tool, kind="tool", name="tool")

    def record(self, turns: int) -> list[Message]:
        with self.package.record(str(self.folder / "cassette")):
            return workload.loop(self.model, self.tool, turns)

    def replay(self, turns: int, edited_at: int | None = None) -> list[Message]:
        with self.package.replay(str(self.folder / "cassette"), strict=True):
            return workload.loop(self.model, self.tool, turns, edited_at)


class AgentRewind(Contestant):
    """Wrapped functions."""

    def __init__(self) -> None:
        self.package: Any = importlib.import_module("rewind")
        self.model = self.package.llm(workload.model, name="model")
        self.tool = self.package.tool(workload.tool, name="tool")

    def record(self, turns: int) -> list[Message]:
        with self.package.record(str(self.folder / "run")):
            return workload.loop(self.model, self.tool, turns)

    def replay(self, turns: int, edited_at: int | None = None) -> list[Message]:
        with self.package.replay(str(self.folder / "run")):
            return workload.loop(self.model, self.tool, turns, edited_at)


def _sorted_tool(q: str, n: int) -> dict[str, Any]:
    """The tool's result with its keys in order: AgentOS gives them back sorted, so an agent that writes a result as
    text would differ on replay."""
    return dict(sorted(workload.tool(q, n).items()))


class AgentOS(Contestant):
    """Intercepted calls, as the library's own agents make them."""

    def __init__(self) -> None:
        self.seam: Any = importlib.import_module("agentos.replay.seam")
        self.store: Any = importlib.import_module("agentos.replay.store")
        self.schema: Any = importlib.import_module("agentos.replay.schema")
        kinds = self.schema.SeamKind
        self.sites = {
            kind: self.seam.call_site_id("w", name, kind)
            for kind, name in ((kinds.PROVIDER, "model"), (kinds.TOOL, "tool"))
        }

    def _loop(self, turns: int, edited_at: int | None = None) -> list[Message]:
        intercept, kinds, sites = self.seam.intercept, self.schema.SeamKind, self.sites

        def ask(messages: list[Message]) -> Message:
            request, site = {"messages": messages}, sites[kinds.PROVIDER]
            answer: Message = intercept(kinds.PROVIDER, site, request, lambda: workload.model(messages))
            return answer

        def use(q: str, n: int) -> dict[str, Any]:
            request, site = {"q": q, "n": n}, sites[kinds.TOOL]
            result: dict[str, Any] = intercept(kinds.TOOL, site, request, lambda: _sorted_tool(q, n))
            return result

        return workload.loop(ask, use, turns, edited_at)

    def bare(self, turns: int) -> list[Message]:
        return workload.loop(workload.model, _sorted_tool, turns)

    def record(self, turns: int) -> list[Message]:
        writing = self.store.TraceWriter(str(self.folder), self.schema.RunHeader(run_id="run"))
        with writing as writer, self.seam.use_interceptor(self.seam.Recorder(writer)):
            return self._loop(turns)

    def replay(self, turns: int, edited_at: int | None = None) -> list[Message]:
        reader = self.store.TraceReader(str(self.folder / "runs" / "run.jsonl"))
        with self.seam.use_interceptor(self.seam.Replayer(reader.events, reader.blobs)):
            return self._loop(turns, edited_at)


class AgentVCR(Contestant):
    """Told of each call by the agent. Its player gives frames back and runs no agent."""

    replays = False

    def __init__(self) -> None:
        logging.disable(logging.CRITICAL)  # it logs a line for each call; that is not what is compared
        self.package: Any = importlib.import_module("agent_vcr")
        self.saved: Path | None = None

    def record(self, turns: int) -> list[Message]:
        recorder = self.package.VCRRecorder(output_dir=str(self.folder))
        recorder.start_session("run")

        def ask(messages: list[Message]) -> Message:
            answer = workload.model(messages)
            recorder.record_llm_call("m", list(messages), answer, 1, 1, 1.0)
            return answer

        def use(q: str, n: int) -> dict[str, Any]:
            result = workload.tool(q, n)
            recorder.record_tool_call("tool", {"q": q, "n": n}, result, 1.0)
            return result

        messages = workload.loop(ask, use, turns)
        recorder.save()
        return messages
