"""Workload W as each recorder wants it written: one class for each, imported only in the environment that has it."""

from __future__ import annotations

import importlib

from benchmarks.peers.contestants.base import Contestant

__all__ = ["CLASSES", "contestant"]

CLASSES = {
    "agentloom model": "ours:Model",
    "agentloom openai": "ours:OpenAI",
    "agentos-platform": "seams:AgentOS",
    "ai-agent-vcr": "seams:AgentVCR",
    "agentcassette": "seams:AgentCassette",
    "agent-rewind": "seams:AgentRewind",
    "langgraph SqliteSaver": "graphs:Graph",
    "langgraph functional": "graphs:Functional",
    "dbos SQLite": "durable:Workflow",
    "temporalio replayer": "temporal:History",
    "vcrpy + openai": "sdk:Cassette",
    "vcrpy + openai, body": "sdk:CassetteOfBodies",
}
"""Where the class of each row of the table is."""


def contestant(name: str) -> Contestant:
    """The contestant of that row. Imports the recorder, so it must be installed here."""
    module, _, cls = CLASSES[name].partition(":")
    made: Contestant = getattr(importlib.import_module(f"{__name__}.{module}"), cls)()
    return made
