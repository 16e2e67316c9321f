"""Programs written to disk, recorded, edited and replayed: what a user does, without a second process."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentloom import Trace, set_backend
from agentloom.replay.report import Report

_numbers = itertools.count()


class Program:
    """One module, ``agent.py`` in a folder of its own, that holds an agent called ``run``."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "agent.py"
        self.store = folder / "store"
        self.name = f"agent_under_test_{next(_numbers)}"

    def load(self, source: str | None = None) -> ModuleType:
        """Write the source, if any, and import the file afresh."""
        if source is not None:
            self.file.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(self.name, self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.name] = module
        spec.loader.exec_module(module)
        return module

    def record(self, source: str, *args: object, **options: Any) -> Trace:
        """Import ``source`` and record a run of its agent."""
        trace = self.load(source).run.run(*args, store=self.store, **options)
        assert isinstance(trace, Trace)
        return trace

    def replay(self, trace: Trace, *edits: tuple[str, str]) -> Report:
        """Edit the file, import it afresh and replay the trace with it."""
        text = self.file.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        return trace.replay(check=False, agent=self.load(text).run)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A fresh program; its module is forgotten afterwards."""
    made = Program(tmp_path)
    yield made
    sys.modules.pop(made.name, None)


class Backend:
    """A model that answers from a list, in order; counts its calls."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.calls = 0

    def _next(self) -> dict[str, Any]:
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else f"answer {self.calls}"
        return answer if isinstance(answer, dict) else {"content": answer, "tool_calls": [], "model": "fake"}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The next answer."""
        return self._next()

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The next answer."""
        return self._next()

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The next answer, a word a chunk."""
        for word in str(self._next()["content"]).split():
            yield {"content": word + " "}

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The next answer, a word a chunk."""
        for word in str(self._next()["content"]).split():
            yield {"content": word + " "}


@pytest.fixture
def backend() -> Iterator[Backend]:
    """The scripted model, in place of every provider."""
    made = Backend()
    before = set_backend(made)
    yield made
    set_backend(before)
