"""DBOS on SQLite: steps of a durable workflow."""

from __future__ import annotations

import importlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.agent import workload
from benchmarks.agent.workload import Message
from benchmarks.peers.contestants.base import Contestant, typed

__all__ = ["Workflow"]

_dbos: Any = importlib.import_module("dbos")
_edit: list[int | None] = [None]


@typed(_dbos.DBOS.step())
def _model(messages: list[Message]) -> Message:
    return workload.model(messages)


@typed(_dbos.DBOS.step())
def _tool(q: str, n: int) -> dict[str, Any]:
    return workload.tool(q, n)


@typed(_dbos.DBOS.workflow())
def _workflow(turns: int) -> int:
    return len(workload.loop(_model, _tool, turns, _edit[0]))


class Workflow(Contestant):
    """A replay is a fork of the workflow past its last step: the body runs, the steps are answered from the table."""

    def __init__(self) -> None:
        self.file: Path | None = None
        self.before = self.runs = 0

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        if self.file is None:  # one database for a process: it is a global of the library
            self.file = folder.parent / "dbos.sqlite"
            config = {"name": "bench", "system_database_url": f"sqlite:///{self.file}"}
            quiet = {"run_admin_server": False, "log_level": "CRITICAL", "application_version": "1"}
            _dbos.DBOS(config={**config, **quiet})
            _dbos.DBOS.launch()
        self.before = self._whole()
        self.runs += 1

    def record(self, turns: int) -> int:
        with _dbos.SetWorkflowID(f"run-{self.runs}"):
            return _workflow(turns)

    def replay(self, turns: int, edited_at: int | None = None) -> int:
        _edit[0] = edited_at
        try:
            length: int = _dbos.DBOS.fork_workflow(f"run-{self.runs}", 2 * turns + 1).get_result()
            return length
        finally:
            _edit[0] = None

    def _whole(self) -> int:
        assert self.file is not None
        with closing(sqlite3.connect(self.file)) as connection:
            connection.execute("pragma wal_checkpoint(TRUNCATE)")
        return self.file.stat().st_size

    def size(self) -> int:
        """What the database grew by."""
        return self._whole() - self.before

    def close(self) -> None:
        _dbos.DBOS.destroy()
