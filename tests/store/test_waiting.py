"""What an unfinished trace waits for: hand-made entries, read whole and from their ends."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from agentloom.format.journal import Journal
from agentloom.runtime.asks import open_asks
from agentloom.store import scan as scan_module
from agentloom.store.base import RunRow
from agentloom.store.scan import Source, live, scan, scan_bytes, unfinished
from agentloom.store.waiting import Waits
from agentloom.testing.store_contract import Sample

_numbers = itertools.count()


class Story(Sample):
    """A trace with questions in it."""

    def begin(self, call: str, kind: str = "ask", **more: Any) -> bytes:
        fields = {
            "call": call, "type": kind, "name": kind, "key": "0" * 32, "profile": "plain/1",
            "req": self._blobs.put({"call": call}), "src": "support.py:3 support", **more,
        }  # fmt: skip
        return self._write("request", fields)

    def suspend(self, call: str, ask: str, **more: Any) -> bytes:
        facts: dict[str, Any] = {"question": f"{ask}?", "kind": "answer"}
        return self._write("suspend", {"ask": ask, "call": call, "val": self._blobs.put(facts), **more})

    def asks(self, call: str, ask: str, **more: Any) -> bytes:
        return self.begin(call) + self.suspend(call, ask, **more)

    def resume(self, epoch: int) -> bytes:
        return self._write("resume", {"epoch": epoch})

    def answer(self, ask: str) -> bytes:
        return self._write("answer", {"ask": ask, "val": self._blobs.put("yes")})

    def outcome(self, call: str) -> bytes:
        self._calls += 1
        fields: dict[str, Any] = {
            "call": call,
            "d": self._calls,
            "vt": self._calls,
            "status": "ok",
            "val": self._blobs.put("yes"),
        }
        return self._write("outcome", fields)

    def retract(self, first: int) -> bytes:
        return self._write("retract", {"from": first})

    @property
    def next(self) -> int:
        return self._journal.seq + 1


def row_of(story: Story, *parts: bytes, running: bool = False) -> RunRow:
    return scan_bytes(b"".join(parts), story.run, running=running)


def test_an_open_question_suspends_a_run_that_nobody_writes() -> None:
    story = Story()
    parts = [story.start(), *story.call(), story.asks("root#7", "7", deadline=99)]
    row = row_of(story, *parts)
    assert (row.status, row.asks, row.due, row.epoch, row.ended) == ("suspended", ("7",), 99, 1, None)
    assert row_of(story, *parts, running=True).status == "running"


def test_several_questions_stand_in_their_order_with_the_first_time() -> None:
    story = Story()
    row = row_of(
        story, story.start(), story.asks("root#1", "1", deadline=500), story.asks("root#2", "2"),
        story.asks("root#3", "3", deadline=400),
    )  # fmt: skip
    assert (row.asks, row.due) == (("1", "2", "3"), 400)


def test_an_answered_question_is_not_open_and_the_run_ends_as_any() -> None:
    story = Story()
    parts = [story.start(), story.asks("root#1", "1"), story.asks("root#2", "2"), story.resume(2)]
    parts += [story.answer("1"), story.outcome("root#1")]
    row = row_of(story, *parts)
    assert (row.status, row.asks, row.epoch) == ("suspended", ("2",), 2)
    parts += [story.resume(3), story.answer("2")]
    assert row_of(story, *parts).status == "crashed"  # it died before the answer reached its call
    parts += [story.outcome("root#2"), story.end()]
    row = row_of(story, *parts)
    assert (row.status, row.asks, row.due, row.epoch) == ("completed", (), None, 3)


def test_a_call_in_doubt_beside_the_question_is_a_crash() -> None:
    story = Story()
    parts = [story.start(), story.begin("root/a#1", "tool"), story.asks("root/b#1", "2")]
    row = row_of(story, *parts)
    assert (row.status, row.asks) == ("crashed", ("2",))
    assert row_of(story, *parts, story.outcome("root/a#1")).status == "suspended"


def test_a_call_in_whose_work_is_asked_is_not_in_doubt() -> None:
    story = Story()
    parts = [story.start(), story.begin("root#1", "agent"), story.begin("root/x#1", "tool", parent="root#1")]
    parts += [story.begin("root/x/y#1", parent="root/x#1"), story.suspend("root/x/y#1", "3")]
    assert row_of(story, *parts).status == "suspended"


def test_what_a_retraction_takes_back() -> None:
    story = Story()
    parts = [story.start(), story.asks("root#1", "1")]
    first = story.next
    parts += [story.answer("1"), story.outcome("root#1"), story.asks("root#2", "2")]
    assert row_of(story, *parts, story.retract(first)).asks == ("1",)
    story = Story()
    parts = [story.start()]
    first = story.next
    parts += [story.asks("root#1", "1"), story.retract(first)]
    assert row_of(story, *parts).status == "crashed"


def test_entries_of_the_wrong_shape_say_nothing() -> None:
    waits = Waits()
    for entry in (
        {}, {"seq": "1", "kind": "suspend", "call": "a", "ask": "1"}, {"seq": 1, "kind": "suspend"},
        {"seq": 1, "kind": "retract"}, {"seq": 1, "kind": "answer"}, {"seq": 2, "kind": "outcome", "call": 3},
    ):  # fmt: skip
        waits.take(entry)
    assert (waits.asks, waits.due, waits.at_rest, waits.epoch) == ((), None, False, 1)
    waits.take({"seq": 3, "kind": "resume"})
    waits.take({"seq": 4, "kind": "suspend", "call": "root#1", "ask": 4, "deadline": "soon"})
    assert (waits.asks, waits.due, waits.epoch) == (("4",), None, 2)


def filler(story: Story, calls: int, size: int = 20_000) -> list[bytes]:
    return [part for _ in range(calls) for part in story.call(size=size)]


@pytest.mark.parametrize("where", ["begin", "middle", "end", "answered", "nowhere", "resumed"])
@pytest.mark.parametrize("chunk", [97, 1 << 18])
def test_a_large_trace_is_read_as_a_small_one(
    monkeypatch: pytest.MonkeyPatch, where: str, chunk: int
) -> None:
    story = Story()
    ask = [story.begin("root/p#1", deadline=5), story.suspend("root/p#1", "1", deadline=5)]
    calls = 4 if chunk == 97 else 12
    parts = [story.start()]
    if where not in {"nowhere", "end"}:
        parts += ask
    elif where == "end":
        story = Story()
        parts = [story.start()]
    parts += filler(story, calls)
    if where == "middle":
        parts += [story.asks("root/q#1", "9"), *filler(story, calls)]
    if where == "end":
        parts += [story.asks("root/q#1", "9")]
    if where == "answered":
        parts += [story.resume(2), story.answer("1"), story.outcome("root/p#1"), *filler(story, calls)]
    if where == "resumed":
        parts += [story.resume(2), *filler(story, calls)]
    data = b"".join(parts)
    whole = scan(Source.of(data), story.run, deep=True)
    monkeypatch.setattr(scan_module, "LARGE", 1000)
    monkeypatch.setattr(scan_module, "_TAIL", 5000)
    monkeypatch.setattr(scan_module, "_HEAD", 5000)
    monkeypatch.setattr(scan_module, "_CHUNK", chunk)
    ends = scan(Source.of(data), story.run, deep=False)
    assert ends.partial
    for name in ("status", "asks", "due", "epoch"):
        assert getattr(whole, name) == getattr(ends, name), name
    assert unfinished(ends)
    assert live(ends, True).status == "running"


def test_rows_agree_with_the_questions_that_are_read_from_the_whole_trace() -> None:
    seed = 7
    print("seed", seed)
    source = random.Random(seed)
    for _ in range(60):
        story = Story(source.randrange(1000))
        parts, asked, closed = [story.start()], list[int](), set[int]()
        for number in range(source.randrange(1, 12)):
            move = source.choice(["ask", "ask", "call", "answer", "resume"])
            open_now = [one for one in asked if one not in closed]
            if move == "ask":
                asked.append(number)
                parts.append(story.asks(f"root/q#{number}", str(number)))
            elif move == "call":
                parts += story.call()
            elif move == "answer" and open_now:
                one = source.choice(open_now)
                closed.add(one)
                parts += [story.answer(str(one)), story.outcome(f"root/q#{one}")]
        data = b"".join(parts)
        found = [ask.ask for ask in open_asks(Journal.parse(data))]
        assert list(scan_bytes(data, story.run, running=False).asks) == found
