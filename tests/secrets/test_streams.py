"""A secret split over the chunks of a stream at every place is in none of what is written, and the run replays."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentloom import agent, set_backend, sync
from agentloom.store import MemoryStore
from tests.secrets.shapes import SHAPES, core, make, unfolded

SEED = 20261128


class Streaming:
    """A model that says the given pieces."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[object]:
        for piece in self.pieces:
            yield {"content": piece}
        yield {"finish_reason": "stop"}


SEEN: list[str] = []


@agent(guard="off")
def listens(talk: int) -> str:
    said: list[str] = []
    with sync.model("m", "tell me", stream=True) as stream:
        for number, delta in enumerate(stream):
            said.append(str(delta))
            if number == talk:
                sync.note("in the middle")
    SEEN.append("".join(said))
    return "".join(said)


def _splits(text: str, rng: random.Random, step: int) -> Iterator[list[str]]:
    whole = f"here: {text} done"
    for at in range(1, len(whole), step):
        yield [whole[:at], whole[at:]]
    for _ in range(12):
        a, b = sorted(rng.sample(range(1, len(whole)), 2))
        yield [whole[:a], whole[a:b], whole[b:]]
    yield list(whole)


@pytest.mark.parametrize("talk", [-1, 0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_split_over_chunks_is_not_written(shape: str, talk: int) -> None:
    print(f"seed {SEED}")
    rng = random.Random(f"{SEED} {shape}")
    secret = make(shape, rng)
    step = 1 if talk < 0 or len(secret) < 100 else 3
    for pieces in _splits(secret, rng, step):
        SEEN.clear()
        before = set_backend(Streaming(pieces))  # type: ignore[arg-type]
        try:
            trace = listens.run(talk, store=MemoryStore())
        finally:
            set_backend(before)
        assert SEEN == [f"here: {secret} done"]
        wanted = core(shape, secret).encode()
        found = (
            unfolded(trace._data) if len(pieces) == 3 else [trace._data, trace._data.replace(b"\\n", b"\n")]
        )
        assert not any(wanted in data for data in found), pieces
        report = trace.replay()
        assert report.verdict == "identical", report
