"""What becomes of effects that no host call made: a recording notes them, a replay refuses them."""

from __future__ import annotations

from agentloom.replay.refusal import effect_finding
from agentloom.replay.source import ReplaySource
from agentloom.runtime.refuse import Effect
from agentloom.runtime.session import Session

__all__ = ["Noting", "Refusing"]

_MOST = 200


class Noting:
    """Keeps what was seen while recording, each once."""

    def __init__(self) -> None:
        self.seen: dict[Effect, None] = {}
        self.more = 0

    def attempt(self, effect: Effect) -> None:
        """Note it and let it happen."""
        if effect in self.seen:
            return
        if len(self.seen) >= _MOST:
            self.more += 1
        else:
            self.seen[effect] = None


class Refusing:
    """Refuses everything but reads: the first refusal is kept with the source as the verdict, which nothing that the
    program catches can undo."""

    def __init__(self, session: Session, source: ReplaySource) -> None:
        self._session = session
        self._source = source
        self.reads: dict[Effect, None] = {}

    def attempt(self, effect: Effect) -> None:
        """Raise ``Diverged`` unless it is a read."""
        if effect.kind == "file read":
            if len(self.reads) < _MOST:
                self.reads[effect] = None
            return
        failure = self._source.refuse(effect_finding(effect))
        if self._session.engine.failure is None:
            self._session.engine.failure = failure
        raise failure
