"""Where a value comes from: an earlier outcome that holds it, or a placeholder of redaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from agentloom.errors import PayloadMissing
from agentloom.format.placeholders import PLACEHOLDER
from agentloom.format.values import Tree
from agentloom.replay.fields import Difference

if TYPE_CHECKING:
    from agentloom.replay.source import ReplaySource

__all__ = ["earlier_holder", "holds_placeholder"]

_CALLS = 300  # earlier outcomes looked at
_BYTES = 4_000_000  # of their text


def holds_placeholder(tree: Tree) -> bool:
    """Whether a value holds a placeholder of redaction."""
    if isinstance(tree, str):
        return PLACEHOLDER.search(tree) is not None
    if tree is None or isinstance(tree, bool | int | float):
        return False
    return PLACEHOLDER.search(orjson.dumps(tree).decode()) is not None


def earlier_holder(source: ReplaySource, items: Sequence[Difference]) -> str | None:
    """The number and name of the latest matched call whose outcome holds the first differing value asked for now.

    Looks at values of at least four characters, at the last 300 outcomes, at most 4 MB of them.
    """
    needle = next((text for item in items for text in [_text(item)] if len(text) >= 4), "")
    if not needle:
        return None
    recording, budget = source.recording, _BYTES
    encoded = orjson.dumps(needle)[1:-1]
    seen = 0
    for step in reversed(recording.steps[: source.position]):
        call = step.call
        if step.kind != "outcome" or call is None or call.value is None:
            continue
        seen += 1
        try:
            data = orjson.dumps(recording.outcome(call))
        except PayloadMissing:
            continue  # an erased outcome cannot be searched, and says nothing about this value
        if encoded in data:
            return f"{call.index} ({call.type} {call.name})"
        budget -= len(data)
        if budget < 0 or seen >= _CALLS:
            return None
    return None


def _text(item: Difference) -> str:
    if item.kind == "removed":
        return ""
    if isinstance(item.now, str) and (len(item.now) <= 200 or not item.hunks):
        return item.now
    if item.hunks:
        return item.hunks[0].new.strip()
    if isinstance(item.now, dict) and len(item.now) == 1:
        value = next(iter(item.now.values()))
        return value if isinstance(value, str) else ""
    return ""
