"""The deterministic results of a run as commands show them: what a step gave, and what it chose."""

from __future__ import annotations

from typing import cast

from agentloom.cli.calls import or_missing
from agentloom.cli.render import Span
from agentloom.format.values import Tree
from agentloom.replay.recording import Recording, Step
from agentloom.replay.text import show

__all__ = ["state_json", "state_lines", "states_of"]


def states_of(recording: Recording) -> list[Step]:
    """The states of the run in their order."""
    return [step for step in recording.steps if step.kind == "state" and step.fields is not None]


def state_name(state: Step) -> tuple[str, str]:
    """What kind of result it is, and of what: ``step route``, ``when fix``, ``each summarise``."""
    kind, colon, name = str((state.fields or {}).get("name")).partition(":")
    return (kind, name) if colon else ("step", kind)


def state_text(recording: Recording, state: Step, width: int) -> str:
    """In one line: the result, what was chosen and what was not."""
    fields = state.fields or {}
    value = _value(recording, state)
    kind, _ = state_name(state)
    if kind == "when":
        return "runs" if value is True else "skipped"
    if kind == "each":
        return f"{value} item{'' if value == 1 else 's'}"
    goto, others = fields.get("goto"), fields.get("others")
    parts = [] if isinstance(goto, str) and value == goto else [show(value, width)]
    if isinstance(goto, str):
        parts.append(f"goes to {goto}")
    text = ", ".join(parts)
    if isinstance(others, list) and others:
        text += f", not to {', '.join(map(str, others))}"
    return text if len(text) <= width else text[: max(1, width - 3)] + "..."


def state_json(recording: Recording, state: Step) -> dict[str, object]:
    """A state as ``--json`` shows it."""
    fields = state.fields or {}
    return {
        "id": fields.get("call"),
        "name": fields.get("name"),
        "value": _value(recording, state),
        "goto": fields.get("goto"),
        "others": fields.get("others", []),
        "reads": fields.get("reads", []),
        "src": fields.get("src"),
    }


def _value(recording: Recording, state: Step) -> Tree:
    blob = state.payload
    if blob is None:
        return None
    what = f"the state {(state.fields or {}).get('name')}"
    return cast("Tree", or_missing(lambda: recording.tree(blob, what)))


def state_lines(recording: Recording, states: list[Step], width: int) -> list[tuple[int, list[Span]]]:
    """One line for each state, with the number of its entry: they stand between the lines of the calls."""
    heads = [state_name(state) for state in states]
    kind = max((len(kind) for kind, _ in heads), default=0)
    name = min(24, max((len(name) for _, name in heads), default=0))
    lines: list[tuple[int, list[Span]]] = []
    for state, (what, of) in zip(states, heads, strict=True):
        place = str((state.fields or {}).get("src", "")).split(" ", maxsplit=1)[0].rpartition("/")[2]
        text = state_text(recording, state, max(24, width - kind - name - len(place) - 14))
        spans: list[Span] = [
            ("dim", f"  - {what.ljust(kind)}  "),
            ("name", f"{of[:name].ljust(name)}  "),
            f"-> {text}",
            ("dim", f"  {place}"),
        ]
        lines.append((state.seq, spans))
    return lines
