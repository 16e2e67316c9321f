"""Agents of a few lines, written to disk as a user's are: recorded and replayed in this process."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from agentloom import Trace
from agentloom.replay.report import Report
from agentloom.store import MemoryStore

_numbers = itertools.count()

HEAD = """
import os, sys
import agentloom
from agentloom import agent, allow, tool

acted = []

@tool
def act(value):
    acted.append(value)
    return value
"""
"""What each of these programs begins with; 11 lines long."""


class Program:
    """A module with an agent ``main``, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "program.py"
        self.module: ModuleType | None = None
        self.store = MemoryStore()

    def load(self, text: str) -> Any:
        """Write and import the program; its agent."""
        self.path.write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
        name = f"guarded_program_{next(_numbers)}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self.module
        spec.loader.exec_module(self.module)
        return self.module.main

    def agent(self, body: str, guard: str = "strict", *, is_async: bool = False) -> Any:
        """An agent whose lines are ``body`` (the first of them is line 14), and which then acts and returns."""
        word = "async def" if is_async else "def"
        lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        return self.load(f'@agent(guard="{guard}")\n{word} main():\n{lines}\n')

    def record(self, agent: Any, *args: object, **options: Any) -> Trace:
        """Run it; the trace."""
        trace = agent.run(*args, store=self.store, **options)
        assert isinstance(trace, Trace)
        return trace

    def last(self) -> Trace:
        """The trace of the run that was made last, also of one that failed."""
        return Trace.open("last", self.store)

    def replay(self, agent: Any, trace: Trace | None = None) -> Report:
        """Replay a trace (the last) with an agent."""
        return (trace or self.last()).replay(check=False, agent=agent)
