"""Recordings and replays without a program: the test makes the calls on the engine itself."""

from __future__ import annotations

from collections.abc import Callable

from agentloom.replay.recording import Recording
from agentloom.replay.replayer import session_for
from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.session import Session
from tests.runtime.fakes import Bench


def record(
    act: Callable[[Bench], object], *, end: str | None = "completed", output: object = None
) -> Recording:
    """What a run that does ``act`` records; without ``end`` its process died."""
    bench = Bench()
    act(bench)
    if end is not None:
        bench.engine.finish(end, output)
    return Recording.from_journal(bench.tape.journal)


def replaying(recording: Recording) -> tuple[ReplaySource, Session]:
    """A replay that has made no call yet."""
    source = ReplaySource(recording)
    return source, session_for(recording, source, "/")


def find(session: Session, q: str) -> Call:
    """Make the tool call ``find(q)``."""
    return session.engine.begin(CallSpec("tool", "find", {"q": q}, effect="read"), session.root)


def answered(bench: Bench, q: str) -> None:
    """The same when recording, and its outcome."""
    bench.engine.deliver(Arrival("outcome", bench.begin(q=q)))
