"""One run under way: its engine, its source, its random generators, and (async agents) its inner loop."""

from __future__ import annotations

import hashlib
import random
import secrets
from typing import TYPE_CHECKING

from agentloom.format.callids import segment
from agentloom.runtime.engine import Engine
from agentloom.runtime.forked import ends_with_fork
from agentloom.runtime.guard import OFF, Guard
from agentloom.runtime.scope import Scope
from agentloom.runtime.source import OutcomeSource
from agentloom.runtime.threads import install_threads

if TYPE_CHECKING:
    from agentloom.runtime.baton import Baton
    from agentloom.runtime.driver_async import AsyncDriver
    from agentloom.runtime.guard_effects import RunEffects
    from agentloom.runtime.loop import InnerLoop
    from agentloom.runtime.stock import StockCalls
    from agentloom.runtime.tool_use import ToolUse

__all__ = ["Session"]


class Session:
    """``seed`` seeds the run's explicit random draws, one generator for each path, so that a draw added elsewhere
    shifts nothing; without a seed draws come from the system."""

    __slots__ = (
        "__weakref__",
        "_randoms",
        "adopts",
        "agent",
        "baton",
        "blocking",
        "changes",
        "counts",
        "declared",
        "driver",
        "effects",
        "engine",
        "guard",
        "loop",
        "over",
        "passes",
        "root",
        "run_id",
        "seed",
        "source",
        "stock",
        "tools",
        "yields",
    )

    def __init__(
        self,
        engine: Engine,
        source: OutcomeSource,
        *,
        run_id: str,
        agent: str,
        seed: int | None,
        guard: Guard = OFF,
    ) -> None:
        install_threads()
        self.engine = engine
        self.source = source
        self.run_id = run_id
        self.agent = agent
        self.seed = seed
        self.guard = guard
        self.blocking = False
        """Set by the sync driver: nothing can be awaited in this run."""
        self.over = False
        """Set when a recorded run has ended; threads that it left behind are free then. Never set by a replay.
        Set in a process that was forked off."""
        self.loop: InnerLoop | None = None
        self.baton: Baton | None = None
        self.driver: AsyncDriver | None = None
        """What drives the loop that is under way, if one is."""
        self.adopts = False
        """Whether threads that the run's code starts are part of it."""
        self.yields = False
        """Whether other threads of the run go on where one of them sleeps for no time at all."""
        self.counts: dict[str, int] = {}
        """How many threads, pools and futures it has made."""
        self.changes: dict[str, bool] = {}
        """What ``changed`` has said in this run."""
        self.passes = False
        """Whether connections of clients without an adapter pass, and mark the trace."""
        self.stock: StockCalls | None = None
        """Of a run without a loop of its own: makes its host calls in place."""
        self.tools: ToolUse | None = None
        """What the user of the run says of the tools of frameworks."""
        self.root = Scope(self, f"root/{segment(agent)}")
        self.effects: RunEffects | None = None
        """Who is told of what the run's code does outside every host call; None: nobody."""
        self.declared: set[str] = set()
        self._randoms: dict[str, random.Random] = {}
        ends_with_fork(self)

    def release(self) -> None:
        """Nothing more is asked in this run: let go of what it holds at once, without the collector. Late calls are
        refused as ever."""
        if self.stock is not None:
            self.stock.ended(self)
        self.engine.release()
        self.effects = None
        del self.root  # whose scope holds this session

    def declare(self, facts: dict[str, object]) -> None:
        """Write what the agent's code declares here (a scope that allows effects) into the trace, once a place."""
        facts = {**facts, "where": self.engine.places.caller()}
        said = repr(facts)
        if said not in self.declared:
            self.declared.add(said)
            self.engine.mark("note", facts)

    def random_for(self, path: str) -> random.Random:
        """The generator behind explicit draws made at ``path``."""
        if self.seed is None:
            return secrets.SystemRandom()
        generator = self._randoms.get(path)
        if generator is None:
            digest = hashlib.sha256(f"agentloom random/1\n{self.seed}\n{path}".encode()).digest()
            generator = self._randoms[path] = random.Random(int.from_bytes(digest, "big"))
        return generator
