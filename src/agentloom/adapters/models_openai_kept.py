"""What of a chat answer's message goes back to its provider as it came: content in parts, reasoning with signatures.

It is the answer's ``blocks`` (`agentloom.runtime.assembly`): ``{provider: {field: value}}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.runtime.assembly import copy_tree

if TYPE_CHECKING:
    from agentloom.adapters.models_hosts import Host

__all__ = ["Kept"]

_SET = frozenset(["type", "id", "index", "format"])


class Kept:
    """Collects over the deltas of a stream (or the one message of a whole answer) what `blocks` gives at the end."""

    def __init__(self, provider: str, host: Host, *, whole: bool) -> None:
        self._provider = provider
        self._fields = (*host.gives_back, *host.gives_back_with_calls)
        self._with_calls = frozenset(host.gives_back_with_calls)
        self._whole = whole
        self._held: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, list[str]] = {}
        self._calls: set[int] = set()
        self._ended: set[int] = set()

    def takes(self, number: int, message: Mapping[str, Any]) -> frozenset[str]:
        """Take what the message of choice ``number`` brings. Gives the fields that need not be kept elsewhere."""
        if message.get("tool_calls"):
            self._calls.add(number)
        self._content(number, message.get("content"))
        taken: list[str] = []
        for name in self._fields:
            value = message.get(name)
            if value is None:
                continue
            held = self._held.setdefault(number, {})
            if isinstance(value, list):
                taken.append(name)
                more = cast("list[Any]", value)  # type: ignore[redundant-cast]
                held[name] = copy_tree(more) if self._whole else _joined(held.get(name) or [], more)
            elif isinstance(value, str):
                held[name] = held.get(name, "") + value
            else:
                taken.append(name)
                held[name] = copy_tree(value)
        return frozenset(taken)

    def _content(self, number: int, content: object) -> None:
        held = self._held.get(number, {})
        if isinstance(content, list):
            before = held.get("content")
            if before is None:
                text = "".join(self._texts.get(number, []))
                before = [{"type": "text", "text": text}] if text else []
            self._held.setdefault(number, {})["content"] = _parts(before, cast("list[Any]", content))  # type: ignore[redundant-cast]
        elif isinstance(content, str) and "content" in held:
            held["content"] = _parts(held["content"], [{"type": "text", "text": content}] if content else [])
        elif isinstance(content, str):
            self._texts.setdefault(number, []).append(content)

    def blocks(self, number: int, *, ended: bool) -> dict[str, Any] | None:
        """All of it, once the choice has ended (and again for each piece that comes after); None: nothing to keep."""
        if ended:
            self._ended.add(number)
        held = self._held.get(number)
        if not held or not (self._whole or number in self._ended):
            return None
        kept = {
            name: value
            for name, value in held.items()
            if value != [] and (number in self._calls or name not in self._with_calls)
        }
        return {self._provider: copy_tree(kept)} if kept else None


def _parts(before: list[Any], more: list[Any]) -> list[Any]:
    """Content parts as a whole answer has them: pieces of one text or of one thought are one part."""
    for part in more:
        last = before[-1] if before else None
        if last is None or not _continues(last, part):
            before.append(copy_tree(part))
            continue
        for name, value in cast("dict[str, Any]", part).items():
            if name == "text":
                last["text"] += value
            elif name == "thinking" and isinstance(value, list):
                last["thinking"] = _parts(last["thinking"], cast("list[Any]", value))  # type: ignore[redundant-cast]
            elif name == "thinking":
                last["thinking"] += value
            elif value is not None:
                last[name] = copy_tree(value)
    return before


def _continues(last: Any, part: Any) -> bool:
    if not (isinstance(last, dict) and isinstance(part, dict)):
        return False
    held, new = cast("dict[str, Any]", last), cast("dict[str, Any]", part)
    kind = new.get("type")
    if kind not in ("text", "thinking") or held.get("type") != kind or held.get("closed"):
        return False
    return type(held.get(kind)) is type(new.get(kind)) and new.get(kind) is not None


def _joined(before: list[Any], more: list[Any]) -> list[Any]:
    """Items of a stream joined by type and index, their texts appended."""
    for item in more:
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        place = _place(fields)
        held = next((one for one in before if _place(one) == place), None) if place[1] is not None else None
        if held is None:
            before.append(copy_tree(item))
            continue
        for name, value in fields.items():
            text = isinstance(value, str) and isinstance(held.get(name), str) and name not in _SET
            if text:
                held[name] += value
            elif value is not None:
                held[name] = copy_tree(value)
    return before


def _place(item: Any) -> tuple[Any, Any]:
    fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    return fields.get("type"), fields.get("index")
