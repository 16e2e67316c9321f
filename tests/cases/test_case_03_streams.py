"""Neighbours of case 3: exhausted, missing, changed, read further and left earlier are other words for streams too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

import agentloom
from agentloom import agent, sync
from agentloom.replay.report import Report
from agentloom.store import MemoryStore


class Backend:
    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for word in ("one ", "two ", "three ", "four"):
            yield {"content": word}

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        for delta in self.stream_sync(request):
            yield delta


Asked = tuple[str, int]  # the prompt, and after how many deltas the stream is left (0: never)
PLAN: list[Asked] = []


def _read(deltas: Any, stop: int) -> int:
    count = 0
    with deltas:
        for _ in deltas:
            count += 1
            if count == stop:
                break
    return count


@agent
def reads() -> list[int]:
    return [_read(sync.model("m", prompt, stream=True), stop) for prompt, stop in PLAN]


@agent
async def reads_async() -> list[int]:
    counts: list[int] = []
    for prompt, stop in PLAN:
        count = 0
        async with await agentloom.model("m", prompt, stream=True) as deltas:
            async for _ in deltas:
                count += 1
                if count == stop:
                    break
        counts.append(count)
    return counts


CASES: list[tuple[str, list[Asked], list[Asked], str, str, str]] = [
    # name, recorded, now, class, reason, words
    ("exhausted", [("a", 0)], [("a", 0), ("a", 0)], "extra", "exhausted", "recorded once, asked a second time"),
    ("twice", [("a", 0), ("a", 0)], [("a", 0)] * 3, "extra", "exhausted", "recorded twice, asked a third time"),
    ("missing", [("a", 0), ("b", 0), ("c", 0)], [("a", 0), ("c", 0)], "missing", "skipped", "now it is not"),
    ("ended early", [("a", 0), ("b", 0)], [("a", 0)], "ended early", "agent ends", "went on with call 2 model m"),
    ("changed", [("a", 0), ("b", 0)], [("a", 0), ("x", 0)], "leak", "request", "messages[0].content"),
    ("reads on", [("a", 2)], [("a", 0)], "extra", "reads further", "Chunk 3 of the stream is asked for"),
    ("left earlier", [("a", 0)], [("a", 2)], "changed", "ended by the agent", "left early after 2 of 4 chunks"),
    ("left at once more", [("a", 3)], [("a", 2)], "changed", "ended by the agent", "left early after 2 of 3 chunks"),
]  # fmt: skip


@pytest.mark.parametrize("program", [reads, reads_async], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("recorded", "now", "cls", "reason", "words"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_each_has_its_word(
    program: Any, recorded: list[Asked], now: list[Asked], cls: str, reason: str, words: str
) -> None:
    before = agentloom.set_backend(Backend())
    try:
        PLAN[:] = recorded
        trace = program.run(store=MemoryStore())
    finally:
        agentloom.set_backend(before)
    assert trace.replay().verdict == "identical"
    PLAN[:] = now
    report: Report = trace.replay(check=False)
    finding = report.finding
    assert finding is not None
    assert (finding.cls, finding.reason) == (cls, reason)
    assert words in str(report)
