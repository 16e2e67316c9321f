"""agentloom: its own ``model`` and ``tool``, and the real openai SDK recorded through its adapter."""

from __future__ import annotations

from typing import Any

import agentloom
from agentloom.adapters import sdks
from benchmarks.agent import workload
from benchmarks.agent.agents import Backend, lookup
from benchmarks.agent.workload import Message
from benchmarks.peers.contestants.base import Contestant
from benchmarks.peers.contestants.client import Server, ask_with

__all__ = ["Model", "OpenAI"]

_edit: list[int | None] = [None]
"""The turn at which the agents below insert a message: a change of their code, as a replay sees it."""
_server: list[Server] = []


def _own_model(messages: list[Message]) -> Message:
    return agentloom.sync.model("m", messages).message


@agentloom.agent
def _own(turns: int) -> int:
    return len(workload.loop(_own_model, lookup, turns, _edit[0]))


@agentloom.agent
def _through_sdk(turns: int) -> int:
    return len(workload.loop(ask_with(_server[0].url), workload.tool, turns, _edit[0]))


class _Recorded(Contestant):
    agent: Any
    trace: agentloom.Trace

    def record(self, turns: int) -> int:
        self.trace = self.agent.run(turns, store=self.folder)
        length: int = self.trace.output
        return length

    def replay(self, turns: int, edited_at: int | None = None) -> None:
        _edit[0] = edited_at
        try:
            report = self.trace.replay()
        finally:
            _edit[0] = None
        if report.verdict != "identical":
            raise ValueError(report.verdict)


class Model(_Recorded):
    """``sync.model`` and a tool; every call is checked on replay."""

    agent = _own

    def __init__(self) -> None:
        agentloom.set_backend(Backend())


class OpenAI(_Recorded):
    """The openai SDK's chat completions through the adapter. The tool is plain code, as it is beside vcrpy."""

    agent = _through_sdk

    def __init__(self) -> None:
        sdks.watch()  # as `agentloom run` does
        self.server = Server()
        _server[:] = [self.server]

    def bare(self, turns: int) -> list[Message]:
        return workload.loop(ask_with(self.server.url), workload.tool, turns)

    def close(self) -> None:
        self.server.stop()
