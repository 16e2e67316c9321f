"""A glance at a large trace shows what reading it whole shows, and reads little."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import fields
from typing import Any

import pytest

import agentloom
from agentloom import agent, tool
from agentloom.errors import IntegrityError, PayloadMissing
from agentloom.format import journal as journal_module
from agentloom.format.journal import Journal
from agentloom.replay.glance import glance
from agentloom.replay.recording import RecordedCall, Recording
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider


class File:
    """Bytes that count how many of them were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.count = 0

    def read(self, start: int, count: int) -> bytes:
        part = self.data[start : start + count]
        self.count += len(part)
        return part


@tool(effect="read")
async def slow(number: int) -> dict[str, Any]:
    await asyncio.sleep(0.001 * (number % 3))
    return {"number": number, "text": "z" * 500}


@agent
async def busy(rounds: int) -> int:
    for number in range(rounds):
        await asyncio.gather(slow(number), slow(number + 1), slow(number + 2))
        async for _ in await stream():
            pass
    return rounds


async def stream() -> AsyncIterator[object]:
    return (await agentloom.model("gpt-4o", "count", stream=True)).__aiter__()


@pytest.fixture(scope="module")
def data() -> bytes:
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch, FakeProvider(["one two three"] * 100) as provider:
        patch.setattr(journal_module, "INDEX_EVERY", 60)
        patch.setenv("OPENAI_BASE_URL", provider.openai_url)
        patch.setenv("OPENAI_API_KEY", "test")
        return store.read(busy.run(100, store=store).run_id)


def facts(call: RecordedCall) -> dict[str, object]:
    return {one.name: getattr(call, one.name) for one in fields(RecordedCall) if one.name != "seq"}


def test_the_ends_are_those_of_the_whole(data: bytes) -> None:
    whole = Recording.from_journal(Journal.parse(data))
    file = File(data)
    part = glance(file.read, file.size)
    assert part is not None
    assert part.count == whole.count == 400
    assert len(part.calls) < 100
    assert (part.output(), part.status, part.journal.head) == (100, "completed", whole.journal.head)
    assert part.payload("input") == whole.payload("input")
    for call in [*part.calls[:5], *part.calls[-5:]]:
        there = whole.calls[call.index - 1]
        assert facts(call) == facts(there)
        assert (part.request(call), part.outcome(call)) == (whole.request(there), whole.outcome(there))


def test_every_call_by_number_and_by_id_is_that_of_the_whole(data: bytes) -> None:
    whole = Recording.from_journal(Journal.parse(data))
    file = File(data)
    for there in whole.calls:
        for word in (str(there.index), there.id):
            part = glance(file.read, file.size, word)
            assert part is not None
            (call,) = part.calls
            assert facts(call) == facts(there)
            assert (part.request(call), part.outcome(call)) == (whole.request(there), whole.outcome(there))
            assert list(part.chunks_of(call)) == list(whole.chunks_of(there))


def test_what_cannot_be_told_from_parts_gives_no_glance(data: bytes) -> None:
    assert glance(File(data).read, len(data), "slow#1") is None
    assert glance(File(data).read, len(data), "root/nobody#1") is None
    beyond = glance(File(data).read, len(data), "401")
    assert beyond is not None
    assert 401 not in [call.index for call in beyond.calls]
    uncounted = data.replace(b',"calls":', b',"calla":')
    assert glance(File(uncounted).read, len(uncounted)) is None


def test_an_edit_near_what_is_read_is_named(data: bytes) -> None:
    at = data.rindex(b'"kind":"outcome"')
    edited = data[:at] + data[at:].replace(b'"vt":', b'"vt":1', 1)
    with pytest.raises(IntegrityError):
        glance(File(edited).read, len(edited))


def test_a_run_that_is_still_going_on(data: bytes) -> None:
    torn = data[: data.rindex(b'"kind":"request"')]
    part = glance(File(torn).read, len(torn), "2")
    assert part is not None
    assert part.end is None
    assert part.count == 399
    assert part.calls[0].index == 2


def test_a_payload_that_is_gone_is_missing(data: bytes) -> None:
    whole = Recording.from_journal(Journal.parse(data))
    blob = whole.calls[200].req
    at = data.index(b'{"blob":"%b"' % blob.encode())
    erased = data[:at] + data[data.index(b"\n", at) + 1 :]
    shift = len(data) - len(erased)
    part = glance(File(erased).read, len(erased), "1")
    assert part is None or part.count == 400 or shift
    found = glance(File(erased).read, len(erased), whole.calls[200].id)
    if found is not None:
        with pytest.raises(PayloadMissing, match="call 201"):
            found.request(found.calls[0])
