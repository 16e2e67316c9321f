"""Effects that agent code attempts on replay outside every host call: refused, and named in the report.

Inside one process other code may run beside the replay: only what happens in the replayed run's own context, and in
threads that it starts, is refused. What this cannot see is listed in ``docs/guard.md``; the command line replays in a
child process instead, and watches all of it.
"""

from __future__ import annotations

from agentloom.errors import UnrecordedEffect
from agentloom.format.values import Tree
from agentloom.replay.report import CallRef, Finding
from agentloom.replay.source import ReplaySource
from agentloom.runtime.effects import READS, Effect
from agentloom.runtime.session import Session

__all__ = ["Refusing", "effect_finding", "environment_finding"]

_MOST = 200
_REFUSED = "agentloom.errors:UnrecordedEffect"


def effect_finding(effect: Effect, reason: str | None = None) -> Finding:
    """The finding for a refused effect; ``reason`` is that of the scope that allowed it when recorded."""
    if effect.kind == "tool":
        why = "which is not in the trace. Give and return what can be recorded."
    elif reason is None:
        why = "outside every host call; it is not in the trace. Move it into a tool."
    else:
        why = (
            f"which was allowed when recorded ({reason}); a replay does not do it again. Move it into a tool."
        )
    message = f"Refused: the code {effect.what}, {why}"
    return Finding("extra", CallRef("", "effect", effect.kind, None, effect.where), message, reason="effect")


def environment_finding(what: str, where: str) -> Finding:
    """The finding for a variable that the agent's own code reads now and did not read when recorded."""
    message = f"The code reads {what}, which it did not read when recorded: its value is not in the trace."
    return Finding("extra", CallRef("", "env", what, None, where), message, reason="effect")


class Refusing:
    """Refuses everything but reads: the first refusal is kept with the source as the verdict, which nothing that the
    program catches can undo.

    A recorded run that its strict guard stopped is replayed alike: the same error at the same line, and the same end.
    """

    def __init__(self, source: ReplaySource) -> None:
        self._source = source
        self.session: Session | None = None
        """The session, once there is one: what the program does while it is being imported is refused too."""
        self.reads: dict[Effect, None] = {}

    def attempt(self, effect: Effect) -> None:
        """Raise ``Diverged`` unless it is a read."""
        self._judge(effect, None)

    def allowed(self, effect: Effect, reason: str) -> None:
        """As ``attempt``: nothing is done twice because it was allowed once."""
        self._judge(effect, reason)

    def refused(self, effect: Effect, error: UnrecordedEffect) -> BaseException:
        """The error itself where the recorded run ended with one of its kind, else a verdict."""
        return error if _was_refused(self._source) else self._source.refuse(effect_finding(effect))

    def _judge(self, effect: Effect, reason: str | None) -> None:
        if effect.kind in READS:
            if len(self.reads) < _MOST:
                self.reads[effect] = None
            return
        failure = self._source.refuse(effect_finding(effect, reason))
        if self.session is not None and self.session.engine.failure is None:
            self.session.engine.failure = failure
        raise failure


def _was_refused(source: ReplaySource) -> bool:
    """Whether the recorded run ended with the refusal of an effect."""
    end = source.recording.end
    if end is None or end["status"] != "failed":
        return False
    error: Tree = source.recording.output()
    if not isinstance(error, dict) or not isinstance(error.get("$error"), dict):
        return False
    body = error["$error"]
    return isinstance(body, dict) and body.get("type") == _REFUSED
