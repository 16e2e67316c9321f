"""A call in a few words: ``search("a")``, ``gpt-4o``, and its outcome: ``"found"``, ``3 items``."""

from __future__ import annotations

from collections.abc import Mapping

from agentloom.errors import PayloadMissing
from agentloom.format.values import Tree
from agentloom.replay.answered import answer_of
from agentloom.replay.recording import RecordedCall, Recording, Step
from agentloom.replay.report import CallRef
from agentloom.replay.text import clip, one_line, show
from agentloom.runtime.calls import Call

__all__ = [
    "documents_words",
    "error_words",
    "fate",
    "happened",
    "outcome_words",
    "recorded_ref",
    "ref_now",
    "request_words",
    "unprinted",
]

_WITH_MORE = (
    "agentloom.adapters.framework_tools:Performed",
    "agentloom.cli.script_objects:Changes",
    "agentloom.cli.script_tools:Printed",
)
_SCORED = "agentloom.adapters.langchain_retrievers:Retrieved"

_QUIET = frozenset(("now", "random", "uuid", "env", "sleep"))


def request_words(kind: str, name: str, request: Mapping[str, Tree], width: int = 48) -> str:
    """``name(arguments)`` where the request holds arguments, otherwise what it asks in short."""
    if kind == "model":
        return clip(f"{name}: {_last_message(request)}", width)
    arguments = request.get("args")
    if isinstance(arguments, dict) and not any(key.startswith("$") for key in arguments):
        inner = ", ".join(show(value, 24) for value in arguments.values())
        return clip(f"{name}({inner})", width)
    if isinstance(arguments, list):
        return clip(f"{name}({', '.join(show(value, 24) for value in arguments)})", width)
    if not request or kind in ("http", "sleep") or kind in _QUIET:
        return clip(name, width)
    return clip(f"{name}({', '.join(show(value, 24) for value in request.values())})", width)


def _last_message(request: Mapping[str, Tree]) -> str:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return ""
    last = messages[-1]
    content = last.get("content") if isinstance(last, dict) else last
    return show(content, 40)


def outcome_words(kind: str, status: str | None, tree: Tree, width: int = 32) -> str:
    """The outcome in a few words; a model's answer by its text or the tools that it calls."""
    if status is None:
        return "no outcome (the run died here)"
    if status in ("cancelled", "closed"):
        return "cancelled" if status == "cancelled" else "left early"
    if status == "error":
        return show(tree, width)
    if kind == "model" and isinstance(tree, dict):
        return _answer_words(tree, width)
    if kind == "retrieve" and (words := documents_words(tree, width)) is not None:
        return words
    if isinstance(tree, str):
        return clip(one_line(tree[: width + 1]), width)
    if isinstance(tree, list) and len(show(tree, 1000)) > width:
        return f"{len(tree):,} item" + ("" if len(tree) == 1 else "s")
    return show(tree, width)


def error_words(tree: Tree, width: int = 80) -> str:
    """What a run failed with: the error, or of a script the last line of stderr, or its exit code."""
    if isinstance(tree, dict) and "stderr" in tree and "exit" in tree:
        lines = [line for line in str(tree["stderr"]).splitlines() if line.strip()]
        plain = [
            line for line in lines if not line[0].isspace()
        ] or lines  # an error may explain itself below
        return clip(one_line(plain[-1].strip()), width) if plain else f"exit code {tree['exit']}"
    return "" if tree is None else show(tree, width)


def documents_words(tree: Tree, width: int) -> str | None:
    """What a retriever found, by the ids and scores of its documents; None for another form."""
    scores: list[Tree] = []
    if isinstance(tree, dict) and isinstance(made := tree.get("$obj"), dict) and made.get("type") == _SCORED:
        data = made.get("data")
        found = data if isinstance(data, dict) else {}
        tree, told = found.get("documents"), found.get("scores")
        scores = told if isinstance(told, list) else []
    if not isinstance(tree, list) or not tree:
        return None
    words: list[str] = []
    for number, document in enumerate(tree):
        fields = _fields_of(document)
        score = scores[number] if number < len(scores) else fields.get("score")
        named = fields.get("id") or fields.get("id_") or _fields_of(fields.get("node")).get("id_")
        if named is None:
            return None
        words.append(f"{named} {score:.3g}" if isinstance(score, int | float) else str(named))
    return clip(f"{len(words)}: {', '.join(words)}", width)


def _fields_of(tree: Tree) -> dict[str, Tree]:
    """The fields of a mapping, or of a user's object."""
    made = tree.get("$obj") if isinstance(tree, dict) else None
    data = made.get("data") if isinstance(made, dict) else tree
    fields = data.get("fields", data) if isinstance(data, dict) else None
    return fields if isinstance(fields, dict) else {}


def unprinted(tree: Tree) -> Tree:
    """A tool's result without what the tool of a script printed, and changed in place, meanwhile."""
    if isinstance(tree, dict) and isinstance(made := tree.get("$obj"), dict):
        data = made.get("data")
        if made.get("type") in _WITH_MORE and isinstance(data, dict):
            return data.get("value")
    return tree


def _answer_words(tree: dict[str, Tree], width: int) -> str:
    answer = answer_of(tree)
    return show(tree, width) if answer is None else answer.words(width)


def recorded_ref(recording: Recording, call: RecordedCall, *, words: bool = True) -> CallRef:
    """How a report names a recorded call; ``words`` False leaves its payloads alone."""
    summary = outcome = ""
    journal = recording.journal
    if words and journal.has(call.req):
        summary = request_words(call.type, call.name, recording.request(call))
    if words and (call.value is None or journal.has(call.value)):
        streamed = _streamed(recording, call) if call.type == "model" and call.chunks else None
        outcome = streamed or outcome_words(call.type, call.status, unprinted(recording.outcome(call)))
        if call.status is None and recording.closed:
            outcome = "no outcome (the run ended meanwhile)"
    return CallRef(
        call.id, call.type, call.name, call.index, call.src, call.src, call.effect, summary, outcome
    )


def _streamed(recording: Recording, call: RecordedCall) -> str | None:
    """What the chunks of a model's answer add up to; None where they are of no known form or not in the trace."""
    if call.status != "ok":
        return None
    try:
        answer = answer_of(recording.outcome(call), recording.chunks_of(call))
    except PayloadMissing:
        return None
    return None if answer is None else answer.words(32)


def ref_now(call: Call, recorded: RecordedCall | None, index: int | None) -> CallRef:
    """How a report names a call made now; ``recorded`` is the call at its place, if any."""
    return CallRef(
        call.id,
        call.type,
        call.name,
        index,
        call.src,
        recorded.src if recorded else None,
        call.spec.effect,
        request_words(call.type, call.name, call.tree),
    )


def happened(step: Step | None) -> str:
    """What was recorded at a step, in words."""
    if step is None:
        return "the run had ended"
    if step.call is None:
        words = {
            "timer": "a timer",
            "cancel": "a cancellation",
            "state": "a state",
            "turn": "a turn of the loop",
        }
        return words[step.kind]
    call = f"call {step.call.index} ({step.call.type} {step.call.name})"
    return {"request": call, "chunk": f"a chunk of {call}", "left": f"the end of {call}"}.get(
        step.kind, f"the outcome of {call}"
    )


def fate(recorded: RecordedCall) -> str:
    """How a recorded call ended, in words."""
    words = {"ok": "ended normally", "error": "ended with an error", "closed": "was left early"}
    if recorded.status is None:
        return "had no outcome"
    return words.get(recorded.status, "was cancelled") + ("" if recorded.status == "error" else " later")
