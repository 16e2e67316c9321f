"""vcrpy under the openai SDK: what it records is HTTP, so the tool is plain code and runs in a replay too."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from benchmarks.agent import workload
from benchmarks.agent.workload import Message
from benchmarks.peers.contestants.base import Contestant
from benchmarks.peers.contestants.client import Server, ask_with

__all__ = ["Cassette", "CassetteOfBodies"]


class Cassette(Contestant):
    """As it comes: requests are matched by method and address, bodies are not looked at."""

    options: dict[str, Any] = {}  # noqa: RUF012 - read only

    def __init__(self) -> None:
        logging.disable(logging.CRITICAL)  # it logs a line for each request; that is not what is compared
        self.vcr: Any = importlib.import_module("vcr")
        self.server = Server()

    def bare(self, turns: int) -> list[Message]:
        return workload.loop(ask_with(self.server.url), workload.tool, turns)

    def record(self, turns: int) -> list[Message]:
        with self.vcr.use_cassette(str(self.folder / "run.yaml"), record_mode="once"):
            return workload.loop(ask_with(self.server.url), workload.tool, turns)

    def replay(self, turns: int, edited_at: int | None = None) -> list[Message]:
        with self.vcr.use_cassette(str(self.folder / "run.yaml"), record_mode="none", **self.options):
            return workload.loop(ask_with(self.server.url), workload.tool, turns, edited_at)

    def close(self) -> None:
        self.server.stop()


class CassetteOfBodies(Cassette):
    """Told to compare the body of each request in a replay: the only way in which it checks what the agent asks.

    Not while recording: there it would compare each request with all before it, and has nothing to check. What it
    leaves is what ``Cassette`` leaves, and grows as that does: the long run, of which a cassette of 128 MB would be
    written, is made there alone.
    """

    grows = False

    options = {"match_on": ["method", "scheme", "host", "port", "path", "query", "body"]}  # noqa: RUF012
