"""The answer of a model call as it is recorded, and how the deltas of a stream add up to it.

The answer mapping
    content                 text, or None when the model wrote none
    tool_calls              list in chat-completions form: ``{"id", "type", "function": {"name", "arguments"}}``
    reasoning, refusal      text or None
    finish_reason           ``stop``, ``length``, ``tool_calls``, ``content_filter``, or the provider's own word
    native_finish_reason    the provider's own word
    model                   the model that answered, as the provider resolved it
    id, request_id          of the answer; of the HTTP exchange
    system_fingerprint      or None
    usage                   tokens ``{"input", "cached", "cache_write", "output", "reasoning"}``, None when not
                            reported. ``input`` counts all of the prompt; ``cached`` and ``cache_write`` are parts
                            of it; ``output`` counts all that was generated; ``reasoning`` is a part of it
    raw_usage               the provider's own usage object
    logprobs                as the provider gave them, or None
    blocks                  the provider's own content, kept only when the form above cannot carry it (thinking with
                            signatures, citations, server tools); None otherwise. A list is in Anthropic's form; any
                            other form is a mapping with its name: ``{"responses": [item, ...]}``, ``{"mistral":
                            {"content": [part, ...]}}``. In a message it goes back to where it came from alone
    extra                   fields of the answer's message that have no place above, by name
    info                    other facts of the response and of the choice (``service_tier``, ``created``, ...), by name
    choices                 all choices in order, only when more than one came (``n=2``); None otherwise

A delta of a stream is a mapping with a subset of these fields; `Assembly` says how deltas add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agentloom.format.guards import is_list, is_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Assembly", "assemble", "copy_tree", "empty_answer"]

CHOICE_FIELDS = (
    "content",
    "tool_calls",
    "reasoning",
    "refusal",
    "finish_reason",
    "native_finish_reason",
    "logprobs",
    "blocks",
    "extra",
    "info",
)
_LEAVES = frozenset((str, int, float, bool, type(None)))
_APPENDED = ("content", "reasoning", "refusal")


def copy_tree(tree: Any) -> Any:
    """A deep copy of plain JSON data."""
    if is_map(tree):
        return {key: value if type(value) in _LEAVES else copy_tree(value) for key, value in tree.items()}
    if is_list(tree):
        return [item if type(item) in _LEAVES else copy_tree(item) for item in tree]
    if isinstance(tree, dict):  # of a class of somebody's own
        return copy_tree(dict(cast("dict[str, Any]", tree)))
    if isinstance(tree, list):
        return copy_tree(list(cast("list[Any]", tree)))  # type: ignore[redundant-cast]
    return tree


def empty_answer() -> dict[str, Any]:
    """An answer mapping with every field, in order, before anything arrived."""
    return {
        "content": None,
        "tool_calls": [],
        "reasoning": None,
        "refusal": None,
        "finish_reason": None,
        "native_finish_reason": None,
        "model": None,
        "id": None,
        "request_id": None,
        "system_fingerprint": None,
        "usage": None,
        "raw_usage": None,
        "logprobs": None,
        "blocks": None,
        "extra": {},
        "info": {},
        "choices": None,
    }


class Assembly:
    """Adds up the deltas of a stream to the mapping that the same call without streaming would have given.

    Text fields are appended; tool calls are joined by ``index``; logprobs' token lists are appended; in ``extra``
    mappings are merged, texts and lists appended (list items with an ``index`` joined by it), as the OpenAI SDK adds
    up unknown fields; ``info`` is set by name; every other field is set. ``whole`` gives texts that stand in place of
    their pieces, where a provider says at the end another one than it sent. A delta with ``"choice": i`` belongs to
    choice ``i`` (absent: choice 0).
    """

    def __init__(self) -> None:
        self._answer = empty_answer()
        self._choices: dict[int, dict[str, Any]] = {0: self._answer}
        self._calls: dict[tuple[int, int], dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take one delta. The delta is not kept and not changed."""
        number: int = delta.get("choice", 0)
        target = self._choices.get(number)
        if target is None:
            target = {name: value for name, value in empty_answer().items() if name in CHOICE_FIELDS}
            self._choices[number] = target
        for name, value in delta.items():
            if name == "choice":
                continue
            if name in _APPENDED:
                if value is not None:
                    self._parts.setdefault((number, name), []).append(value)
            elif name == "whole":
                self._parts.update({(number, field): [text] for field, text in value.items()})
            elif name == "tool_calls":
                for call in value:
                    self._add_call(number, target, call)
            elif name == "logprobs":
                target["logprobs"] = _join_logprobs(target["logprobs"], value)
            elif name == "extra":
                target["extra"] = _grow(target["extra"], value)
            elif name == "info":
                target["info"].update(copy_tree(value))
            else:
                target[name] = copy_tree(value)

    def _add_call(self, number: int, target: dict[str, Any], piece: Mapping[str, Any]) -> None:
        index: int = piece.get("index", 0)
        call = self._calls.get((number, index))
        if call is None:
            call = self._calls[(number, index)] = {"id": None, "type": "function"}
            target["tool_calls"].append(call)
        for name, value in piece.items():
            if name == "index" or value is None:
                continue
            if isinstance(value, dict):
                inner: dict[str, Any] = call.setdefault(name, {})
                for key, text in cast("dict[str, Any]", value).items():
                    grows = key in ("arguments", "input") and isinstance(text, str)
                    if grows:
                        inner[key] = inner.get(key, "") + text
                    elif text is not None and (text != "" or not inner.get(key)):
                        inner[key] = copy_tree(text)  # later pieces of some servers have an empty name
            elif value != "" or not call.get(name):
                call[name] = copy_tree(value)

    def answer(self) -> dict[str, Any]:
        """The answer so far, as a fresh mapping."""
        for (number, name), parts in self._parts.items():
            text = "".join(parts)
            self._choices[number][name] = text
            parts[:] = [text]
        answer = cast("dict[str, Any]", copy_tree(self._answer))
        if len(self._choices) > 1:
            ordered = [self._choices[number] for number in sorted(self._choices)]
            answer["choices"] = [
                {name: copy_tree(choice[name]) for name in CHOICE_FIELDS} for choice in ordered
            ]
        return answer


def _join_logprobs(before: Any, more: Any) -> Any:
    if before is None or more is None:
        return copy_tree(more) if before is None else before
    joined = dict(before)
    for name, value in more.items():
        held = joined.get(name)
        joined[name] = (
            [*held, *value] if isinstance(held, list) and isinstance(value, list) else copy_tree(value)
        )
    return joined


def _same_index(items: list[Any], item: Any) -> Any:
    place, kind = _index(item), _kind(item)
    if place is None:
        return None
    return next((held for held in items if _index(held) == place and kind in (None, _kind(held))), None)


def _kind(item: Any) -> Any:
    # Items of different types may share an index; a piece without a type belongs to whatever has its index.
    return cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None


def _index(item: Any) -> Any:
    return cast("dict[str, Any]", item).get("index") if isinstance(item, dict) else None


def _grow_list(items: list[Any], more: list[Any]) -> list[Any]:
    for item in more:
        held = _same_index(items, item)
        if held is None:
            items.append(copy_tree(item))
        else:
            _grow(held, item)
    return items


def _grow(before: Any, more: Any) -> Any:
    """``before`` extended by ``more``; see `Assembly`. Texts under ``type``, ``id`` and ``format`` are set."""
    if isinstance(before, dict) and isinstance(more, dict):
        grown = cast("dict[str, Any]", before)
        for name, value in cast("dict[str, Any]", more).items():
            fixed = name in ("type", "id", "format") or grown.get(name) is None
            grown[name] = copy_tree(value) if fixed else _grow(grown[name], value)
        return grown
    if isinstance(before, list) and isinstance(more, list):
        return _grow_list(cast("list[Any]", before), cast("list[Any]", more))  # type: ignore[redundant-cast]
    if isinstance(before, str) and isinstance(more, str):
        return before + more
    return cast("Any", before if more is None else copy_tree(more))


def assemble(deltas: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer mapping that a whole stream of deltas amounts to."""
    assembly = Assembly()
    for delta in deltas:
        assembly.add(delta)
    return assembly.answer()
