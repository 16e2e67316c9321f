"""What looking for secrets costs a call: runs whose history grows turn by turn, with and without, in one process.

    python -m benchmarks.redaction [--turns 20] [--rounds 7]

Processor time of a turn (a model call on the whole history and a tool call); a ratio is that of the least times of
the rounds, in which the two take turns, or the median of the rounds' ratios where that is lower. Without: the same
redactor, whose gate lets everything pass unseen. ``looked``: bytes that the gate saw, for each byte that was added to
the history.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Mapping
from typing import Any
from unittest import mock

from agentloom import agent, set_backend, sync, tool
from agentloom.runtime import recorder
from agentloom.runtime.redaction import Redactor
from agentloom.store import MemoryStore

__all__ = ["measure"]

SEED = 20261128
KINDS = ("prose", "JSON", "tokens")
SIZES = (1_000, 10_000, 100_000)
_TEXTS: dict[tuple[str, int], list[str]] = {}
_seen = 0


class _Unseen(Redactor):
    def gate(self, data: bytes) -> None:
        pass


class _Counted(Redactor):
    def gate(self, data: bytes) -> None:
        global _seen
        _seen += len(data)
        super().gate(data)


class _Model:
    """Answers with a text; with its log-probabilities where ``tokens``."""

    def __init__(self, *, tokens: bool) -> None:
        self.tokens = tokens

    def complete_sync(self, request: Mapping[str, Any]) -> Any:
        answer: dict[str, Any] = {"content": f"answer {len(request['messages'])}", "tool_calls": []}
        if self.tokens:
            size = len(str(request["messages"][-1]["content"])) // 200
            answer["logprobs"] = {"content": [_token(number) for number in range(size)]}
        return answer


def _token(number: int) -> dict[str, Any]:
    text = f"w{number} "
    # Not as a display: the gate knows such payloads by their names, and sources are payloads, too.
    entry: dict[str, Any] = dict(token=text, logprob=-0.01 * number, bytes=list(text.encode()))  # noqa: C408
    return entry | {"top_logprobs": [entry, {**entry, "logprob": -5.0}]}


@tool(effect="read")
def result(kind: str, size: int, turn: int) -> str:
    return _TEXTS[kind, size][turn]


@agent(guard="off")
def talks(kind: str, size: int, turns: int) -> int:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "begin"}]
    for turn in range(turns):
        answer = sync.model("m", messages)
        found = result(kind, size, turn)
        messages += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": found}]
    return len(messages)


def _texts(kind: str, size: int, turns: int) -> list[str]:
    rng = random.Random(f"{SEED} {kind} {size}")
    words = (
        "the of and to in is that for it as was with be by on not he his but at are this have from".split()
    )
    made: list[str] = []
    for _ in range(turns):
        if kind == "JSON":
            rows = [
                {"id": rng.getrandbits(64), "name": rng.choice(words), "ok": True} for _ in range(size // 48)
            ]
            made.append(json.dumps(rows))
        else:
            made.append(" ".join(rng.choice(words) for _ in range(size // 4)))
    return made


def measure(turns: int, rounds: int) -> dict[str, dict[str, float]]:
    """For each kind and size of what a turn adds: microseconds of a turn with and without, their ratio, ``looked``."""
    global _seen
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        before = set_backend(_Model(tokens=kind == "tokens"))  # type: ignore[arg-type]
        try:
            for size in SIZES:
                _TEXTS[kind, size] = _texts(kind, size, turns)
                added = sum(map(len, _TEXTS[kind, size]))
                seconds: dict[type[Redactor], list[float]] = {Redactor: [], _Unseen: []}
                for _ in range(rounds):
                    for contestant, times in seconds.items():
                        times.append(_timed(contestant, kind, size, turns))
                _seen = 0
                _timed(_Counted, kind, size, turns)
                each = [a / b for a, b in zip(seconds[Redactor], seconds[_Unseen], strict=True)]
                least = {one: min(times) / turns * 1e6 for one, times in seconds.items()}
                found[f"{kind} {size:,}"] = {
                    "with": least[Redactor],
                    "without": least[_Unseen],
                    "ratio": min(least[Redactor] / least[_Unseen], statistics.median(each)),
                    "looked": _seen / added,
                }
        finally:
            set_backend(before)
    return found


def _timed(redactor: type[Redactor], kind: str, size: int, turns: int) -> float:
    with mock.patch.object(recorder, "Redactor", redactor):
        gc.collect()
        begun = time.process_time()
        talks.run(kind, size, turns, store=MemoryStore())
        return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{'a turn adds':<16} {'without':>9} {'with':>9}  ratio  looked")
    for name, row in measure(options.turns, options.rounds).items():
        print(
            f"{name:<16} {row['without']:>6.0f} us {row['with']:>6.0f} us  {row['ratio']:.3f}  {row['looked']:.2f}"
        )


if __name__ == "__main__":
    main()
