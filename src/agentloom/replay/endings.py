"""What is found where the program and the recording do not end together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentloom.format.values import Tree
from agentloom.replay.recording import Recording, Step
from agentloom.replay.report import Finding
from agentloom.replay.summaries import error_words, happened, recorded_ref, ref_now
from agentloom.runtime.calls import Call

__all__ = ["agent_ends", "recording_ends"]


def recording_ends(recording: Recording, call: Call | None) -> Finding:
    """The trace stops where the program would go on, with ``call``: the recorded process died, or the run was
    interrupted. Everything before matched."""
    calls = recording.calls
    dead = next((item for item in calls if item.status is None), None)
    doubt = "was under way" if recording.closed else "has no outcome, it is in doubt"
    where = f"; call {dead.index} ({dead.type} {dead.name}) {doubt}" if dead else ""
    what = "the run was interrupted" if recording.closed else "its process died"
    message = f"The recording ends here: {what} after call {len(calls)}{where}."
    ref = None
    if call is not None:
        recorded = recording.by_id.get(call.id)
        ref = ref_now(call, recorded, recorded.index if recorded else None)
    return Finding("ended early", ref, message, reason="recording ends")


def agent_ends(recording: Recording, left: Sequence[Step], step: Step, status: str, tree: Tree) -> Finding:
    """The program ends, with ``status`` and the output or error ``tree``, before ``step``; ``left`` are the steps from
    there on."""
    rest = [item for item in left if item.kind == "request" and not item.used]
    raised = f"raised {error_words(tree)}".rstrip()
    word = {"completed": "returned", "failed": raised}.get(status, "was cancelled")
    ref = None if step.call is None else replace(recorded_ref(recording, step.call), src=None)  # not made now
    if rest:
        names = ", ".join(
            f"{item.call.index} {item.call.type} {item.call.name}" for item in rest[:3] if item.call
        )
        more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
        message = f"The agent {word} here; when recorded it went on with call {names}{more}."
        return Finding("ended early", ref, message, reason="agent ends")
    message = f"The agent {word} here; when recorded {happened(step)} came first."
    return Finding("ended early", ref, message, reason="agent ends")
