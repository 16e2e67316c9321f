"""A replay that writes down again what it does: the trace that comes out has to be the one that it read, byte for byte.

Far stronger than an equal log: delivery numbers, virtual times, keys, places, histories and payloads are all compared.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Generator
from types import SimpleNamespace
from typing import cast

import pytest

from agentloom.format.journal import Journal
from agentloom.format.values import Tree, decode
from agentloom.replay.recording import Recording
from agentloom.replay.replayer import run_agent, session_for
from agentloom.replay.source import ReplaySource
from agentloom.runtime import recorder
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.ledger import TraceLedger
from agentloom.runtime.registry import TYPES

__all__ = ["rewritten", "salted"]

_OWN = frozenset(("seq", "prev", "at", "kind"))
_PAYLOADS = ("code", "env", "input", "policy", "tags", "conversation")
_SEED = "salts"


@contextlib.contextmanager
def salted() -> Generator[None]:
    """For the block, runs that are recorded get their id, nonce and salts from a seed."""
    patch = pytest.MonkeyPatch()
    drawn = random.Random(_SEED).randbytes
    patch.setattr(recorder, "os", SimpleNamespace(urandom=drawn))
    patch.setattr(recorder, "_urandom", drawn)
    try:
        yield
    finally:
        patch.undo()


def rewritten(data: bytes, agent: AgentFunction) -> bytes:
    """Replay a trace that was recorded ``salted``, writing it down again. Raises what the replay raises."""
    journal = Journal.parse(data)
    recording = Recording.from_journal(journal)
    source = ReplaySource(recording)
    session = session_for(recording, source, agent.root)
    entropy = random.Random(_SEED)
    entropy.randbytes(10)  # the run's id
    nonce = entropy.randbytes(32)
    times = iter([cast(int, entry["at"]) for entry in journal.entries])
    parts: list[bytes] = []
    session.engine.ledger = ledger = TraceLedger(parts.append, entropy.randbytes, lambda: next(times))
    start = journal.entries[0]
    payloads = {name: journal.tree(cast(str, start[name])) for name in _PAYLOADS if name in start}
    facts = {
        name: cast(Tree, value) for name, value in start.items() if name not in (*_OWN, *payloads, "nonce")
    }
    ledger.start(facts, payloads, nonce)
    given = cast("dict[str, Tree]", decode(recording.payload("input"), TYPES))
    run_agent(session, source, agent, given)
    if source.finding is not None:
        raise AssertionError(f"the replay diverged: {source.finding}")
    return b"".join(parts)
