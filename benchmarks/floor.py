"""Floor A: the least that a recorder of this kind could do. orjson and sha256 over the full request, one line
appended and flushed for each call. No locking, no redaction, no exact values, no order: not a product."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks.agent import workload
from benchmarks.agent.workload import Message


def _digest(request: object) -> str:
    return hashlib.sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).hexdigest()


def record(path: Path, turns: int) -> list[Message]:
    """Run workload W, recording."""
    with path.open("wb", buffering=0) as file:
        count = last = 0

        def write(kind: str, request: object, outcome: object, new: object) -> None:
            nonlocal count
            count += 1
            line = {
                "i": count,
                "k": kind,
                "h": _digest(request),
                "in": new,
                "out": outcome,
                "t": time.time_ns(),
            }
            file.write(orjson.dumps(line) + b"\n")

        def ask(messages: list[Message]) -> Message:
            nonlocal last
            answer = workload.model(messages)
            new = [message for message in messages[last:] if message["role"] not in ("assistant", "tool")]
            last = len(messages)
            write("m", {"messages": messages}, answer, new)
            return answer

        def use(q: str, n: int) -> dict[str, Any]:
            result = workload.tool(q, n)
            write("t", {"q": q, "n": n}, result, None)
            return result

        return workload.loop(ask, use, turns)


def replay(path: Path, turns: int) -> list[Message]:
    """Run workload W from the file, checking every request."""
    with path.open("rb") as file:
        lines: Iterator[Any] = map(orjson.loads, file)

        def answer(request: object) -> Any:
            line = next(lines)
            if line["h"] != _digest(request):
                raise ValueError(f"call {line['i']} differs")
            return line["out"]

        model = lambda messages: answer({"messages": messages})  # noqa: E731
        return workload.loop(model, lambda q, n: answer({"q": q, "n": n}), turns)
