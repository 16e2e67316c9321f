"""Workload W: N turns, each one model call (about 1 KB back, the request carries the whole growing history) and one
tool call (about 500 bytes). The model and the tool are cheap pure functions of the turn, so that what is measured is
the recorder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
_WORDS = (
    "the agent reads file and then plans next step with tool result error value index table query user order price "
    "status done retry open close count total"
).split()
_cache: dict[tuple[str, int], str] = {}
PERFORMED = {"model": 0, "tool": 0}
"""How often the model and the tool were really run."""


def text(seed: str, length: int) -> str:
    """Deterministic pseudo-English of ``length`` characters, somewhat compressible."""
    digest = hashlib.sha256(seed.encode()).digest()
    words: list[str] = []
    size = index = 0
    while size < length:
        if index % 32 == 0:
            digest = hashlib.sha256(digest).digest()
        word = _WORDS[digest[index % 32] % len(_WORDS)]
        if index % 5 == 4:
            word = digest[:4].hex() + str(index)
        words.append(word)
        size += len(word) + 1
        index += 1
    return " ".join(words)[:length]


def model(messages: list[Message]) -> Message:
    """An assistant message of about 1 KB that asks for one tool call."""
    PERFORMED["model"] += 1
    turn = sum(1 for message in messages if message["role"] == "assistant")
    cached = _cache.get(("model", turn))
    if cached is None:
        arguments = json.dumps({"q": f"k{turn}", "n": turn})
        call = {
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "lookup", "arguments": arguments},
        }
        message = {"role": "assistant", "content": text(f"m{turn}", 780), "tool_calls": [call]}
        cached = _cache["model", turn] = json.dumps(message)
    answer: Message = json.loads(cached)
    return answer


def tool(q: str, n: int) -> dict[str, Any]:
    """A tool's result of about 500 bytes."""
    PERFORMED["tool"] += 1
    cached = _cache.get(("tool", n))
    if cached is None:
        cached = _cache["tool", n] = json.dumps({"q": q, "n": n, "rows": [text(f"t{n}", 430)], "ok": True})
    result: dict[str, Any] = json.loads(cached)
    return result


def start() -> list[Message]:
    """The system prompt and the task."""
    return [
        {"role": "system", "content": "You are a careful agent. " + text("sys", 600)},
        {"role": "user", "content": "Do the task " + text("usr", 200)},
    ]


def loop(
    ask: Callable[[list[Message]], Message],
    use: Callable[[str, int], dict[str, Any]],
    turns: int,
    edited_at: int | None = None,
) -> list[Message]:
    """The agent. ``edited_at`` inserts a message at that turn, which a replay must notice."""
    messages = start()
    for turn in range(turns):
        if turn == edited_at:
            messages.append({"role": "user", "content": "CHANGED PROMPT"})
        answer = ask(messages)
        messages.append(answer)
        call = answer["tool_calls"][0]
        arguments = json.loads(call["function"]["arguments"])
        result = use(arguments["q"], arguments["n"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    return messages
