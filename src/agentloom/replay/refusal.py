"""Effects that agent code attempts on replay outside every host call: refused, and named in the report.

Works inside one process, where other code may run beside the replay: only what happens in the replayed run's own
context, and in threads that it starts, is refused. What this cannot see is listed in ``docs/concepts.md``; the
command line replays in a child process instead.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from agentloom.replay.report import CallRef, Finding
from agentloom.replay.source import ReplaySource
from agentloom.runtime.places import Places
from agentloom.runtime.refuse import Effect, Watch
from agentloom.runtime.scope import current
from agentloom.runtime.strays import stray

__all__ = ["effect_finding", "refusing"]


def effect_finding(effect: Effect) -> Finding:
    """The finding for a refused effect."""
    message = f"Refused: the code {effect.what}, outside every host call; it is not in the trace. Move it into a tool."
    return Finding("extra", CallRef("", "effect", effect.kind, None, effect.where), message, reason="effect")


class _Router:
    """Gives an effect to the replay in whose run it happens; there may be several in one process."""

    def attempt(self, effect: Effect) -> None:
        """Refuse the effect where a replayed run attempts it; reads are let through."""
        scope = current()
        session = scope.session if scope is not None else stray()
        source = session.source if session is not None else None
        if session is None or not isinstance(source, ReplaySource) or effect.kind == "file read":
            return
        failure = source.refuse(effect_finding(effect))
        if session.engine.failure is None:
            session.engine.failure = failure
        raise failure


_lock = threading.Lock()
_under_way = 0
_stack = ExitStack()


@contextmanager
def refusing(places: Places) -> Generator[None]:
    """Refuse effects of replayed runs while the block runs. Replays on several threads share one watch."""
    global _under_way
    with _lock:
        if _under_way == 0:
            _stack.enter_context(Watch(_Router(), places, everything=False).armed())
        _under_way += 1
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            if _under_way == 0:
                _stack.close()
