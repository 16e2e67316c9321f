"""One run under way: its engine, its source, its random generators, and (async agents) its inner loop."""

from __future__ import annotations

import hashlib
import random
import secrets
from typing import TYPE_CHECKING

from agentloom.format.callids import segment
from agentloom.runtime.engine import Engine
from agentloom.runtime.scope import Scope
from agentloom.runtime.source import OutcomeSource
from agentloom.runtime.strays import mark_threads

if TYPE_CHECKING:
    from agentloom.runtime.baton import Baton
    from agentloom.runtime.loop import InnerLoop

__all__ = ["Session"]


class Session:
    """``seed`` seeds the run's explicit random draws, one generator for each path, so that a draw added elsewhere
    shifts nothing; without a seed draws come from the system."""

    __slots__ = (
        "_randoms",
        "agent",
        "baton",
        "blocking",
        "engine",
        "loop",
        "over",
        "root",
        "run_id",
        "seed",
        "source",
    )

    def __init__(
        self, engine: Engine, source: OutcomeSource, *, run_id: str, agent: str, seed: int | None
    ) -> None:
        mark_threads()
        self.engine = engine
        self.source = source
        self.run_id = run_id
        self.agent = agent
        self.seed = seed
        self.blocking = False
        """Set by the sync driver: nothing can be awaited in this run."""
        self.over = False
        """Set when a recorded run has ended; threads that it left behind are free then. Never set by a replay."""
        self.loop: InnerLoop | None = None
        self.baton: Baton | None = None
        self.root = Scope(self, f"root/{segment(agent)}")
        self._randoms: dict[str, random.Random] = {}

    def release(self) -> None:
        """Nothing more is asked in this run: let go of what it holds at once, without the collector. Late calls are
        refused as ever."""
        self.engine.release()
        del self.root  # whose scope holds this session

    def random_for(self, path: str) -> random.Random:
        """The generator behind explicit draws made at ``path``."""
        if self.seed is None:
            return secrets.SystemRandom()
        generator = self._randoms.get(path)
        if generator is None:
            digest = hashlib.sha256(f"agentloom random/1\n{self.seed}\n{path}".encode()).digest()
            generator = self._randoms[path] = random.Random(int.from_bytes(digest, "big"))
        return generator
