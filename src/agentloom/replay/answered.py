"""What a model answered, from any recorded form: agentloom's own, or an SDK's exchange, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from agentloom.format.values import Tree
from agentloom.replay.text import clip, one_line, show

__all__ = ["Answered", "answer_of", "wire_answer"]


@dataclass(slots=True)
class Answered:
    """An answer's text and tool calls; of each tool call its name, and its arguments as the model wrote them."""

    text: str = ""
    tools: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def words(self, width: int) -> str:
        """The tool calls as ``name(values)``, else the text, in one line of at most ``width`` characters."""
        if not self.tools:
            return show(self.text, width)
        return clip(", ".join(f"{name}({_values(arguments)})" for name, arguments in self.tools), width)

    def extend(self, index: int, name: str, arguments: str) -> None:
        """Add a piece of the tool call at ``index``, which is made when it is new."""
        while len(self.tools) <= index:
            self.tools.append(("", ""))
        before = self.tools[index]
        self.tools[index] = (before[0] + name, before[1] + arguments)


def answer_of(tree: Tree, chunks: Iterable[Tree] = ()) -> Answered | None:
    """The answer that an outcome holds, or that its chunks add up to; None where it is no answer of a known form.

    Forms: a mapping with ``content`` or ``tool_calls`` (agentloom's own), ``{"json": body}`` of the OpenAI chat
    completions and the Anthropic messages API, and their stream events.
    """
    whole = _whole(tree)
    if whole is not None:
        return whole
    answer, known = Answered(), False
    for chunk in chunks:
        known = _add(answer, chunk) or known
    return answer if known else None


def wire_answer(tree: Tree, chunks: Iterable[Tree] = ()) -> dict[str, Tree] | None:
    """What an SDK's exchange answers, without its envelope: ``content``, ``tool_calls``, ``finish_reason``.

    None where it is no exchange, its form is not known, or it holds several answers.
    """
    body = tree.get("json") if isinstance(tree, dict) and "headers" in tree else None
    if tree is not None and not isinstance(body, dict):
        return None
    choices = body.get("choices") if isinstance(body, dict) else None
    if isinstance(choices, list) and len(choices) > 1:
        return None
    answer = answer_of(tree, chunks)
    if answer is None:
        return None
    said: dict[str, Tree] = {"content": answer.text}
    if answer.tools:
        said["tool_calls"] = [{"name": name, "arguments": given} for name, given in answer.tools]
    if isinstance(body, dict):
        first = choices[0] if isinstance(choices, list) and choices else body
        ended = first.get("finish_reason") or first.get("stop_reason") if isinstance(first, dict) else None
        said["finish_reason"] = ended
    return said


def _whole(tree: Tree) -> Answered | None:
    body = tree.get("json") if isinstance(tree, dict) and "json" in tree else tree
    if not isinstance(body, dict):
        return None
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message")
        return _message(message) if isinstance(message, dict) else None
    content = body.get("content")
    if isinstance(content, list) and body.get("type") == "message":
        return _blocks(content)
    return _message(body) if "content" in body or "tool_calls" in body else None


def _message(message: dict[str, Tree]) -> Answered | None:
    """``{"content", "tool_calls"}`` in the OpenAI form."""
    answer = Answered(_text(message.get("content")) or _text(message.get("refusal")))
    called = message.get("tool_calls")
    for index, item in enumerate(called if isinstance(called, list) else []):
        _called(answer, index, item)
    return answer


def _blocks(blocks: list[Tree]) -> Answered:
    """Content blocks in the Anthropic form."""
    answer = Answered()
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "text":
            answer.text += _text(block.get("text"))
        elif isinstance(block, dict) and block.get("type") == "tool_use":
            arguments = orjson.dumps(block.get("input") or {}).decode()
            answer.tools.append((_text(block.get("name")), arguments))
    return answer


def _add(answer: Answered, chunk: Tree) -> bool:
    """Add a stream event; whether its form is known."""
    if not isinstance(chunk, dict):
        return False
    event = chunk.get("json", chunk)
    if not isinstance(event, dict):
        return False
    choices = event.get("choices")
    if isinstance(choices, list):
        first = choices[0] if choices and isinstance(choices[0], dict) else {}
        event = first.get("delta") or {}
    elif _text(event.get("type")).startswith("content_block"):
        return _block_event(answer, event)
    if not isinstance(event, dict) or (
        choices is None and not event.keys() & {"content", "tool_calls", "whole"}
    ):
        return False
    whole = event.get("whole")
    if isinstance(whole, dict) and "content" in whole:
        answer.text = _text(whole["content"])
    answer.text += _text(event.get("content"))
    called = event.get("tool_calls")
    for item in called if isinstance(called, list) else []:
        _called(answer, 0, item)
    return True


def _block_event(answer: Answered, event: dict[str, Tree]) -> bool:
    """A content block of an Anthropic stream: its start names a tool, its deltas hold text or arguments."""
    start, delta = event.get("content_block"), event.get("delta")
    if isinstance(start, dict) and start.get("type") == "tool_use":
        answer.tools.append((_text(start.get("name")), ""))
    if isinstance(delta, dict):
        answer.text += _text(delta.get("text"))
        if delta.get("partial_json") and answer.tools:
            answer.extend(len(answer.tools) - 1, "", _text(delta.get("partial_json")))
    return True


def _called(answer: Answered, index: int, item: Tree) -> None:
    """A tool call, or a piece of one, which says its own index."""
    body = item.get("function") or item.get("custom") if isinstance(item, dict) else None
    if isinstance(item, dict) and isinstance(body, dict):
        at = item.get("index")
        arguments = _text(body.get("arguments")) or _text(body.get("input"))
        answer.extend(
            at if isinstance(at, int) and 0 <= at < 1000 else index, _text(body.get("name")), arguments
        )


def _text(value: Tree) -> str:
    return value if isinstance(value, str) else ""


def _values(arguments: str) -> str:
    """``812, 40`` for ``{"order": 812, "amount": 40}``; what is no JSON object as it stands."""
    try:
        tree: Tree = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return one_line(arguments)
    return (
        ", ".join(show(value, 40) for value in tree.values())
        if isinstance(tree, dict)
        else one_line(arguments)
    )
