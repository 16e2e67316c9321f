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

    def facts(self) -> list[dict[str, str]]:
        """What was seen, as the parent is told."""
        return [{"kind": effect.kind, "what": effect.what, "where": effect.where} for effect in self.seen]


class Refusing:
    """Refuses everything but reads: the first refusal is kept with the source as the verdict, which nothing that the
    program catches can undo."""

    def __init__(self, source: ReplaySource) -> None:
        self._source = source
        self.session: Session | None = None
        """The session, once there is one: what the program does while it is being imported is refused too."""
        self.reads: dict[Effect, None] = {}

    def attempt(self, effect: Effect) -> None:
        """Raise ``Diverged`` unless it is a read."""
        if effect.kind == "file read":
            if len(self.reads) < _MOST:
                self.reads[effect] = None
            return
        failure = self._source.refuse(effect_finding(effect))
        if self.session is not None and self.session.engine.failure is None:
            self.session.engine.failure = failure
        raise failure
