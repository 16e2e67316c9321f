"""Which calls that wait for somebody can go on, and when the run is left."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import Expired, Suspend
from agentloom.format.values import Types
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.outside import Outside
from agentloom.runtime.waits import Waits, refuse_wait
from agentloom.store.mail import Mail

START = 1_000_000
SECOND = 1_000_000_000


class Bench:
    def __init__(self, **options: Any) -> None:
        self.mail: list[Mail] = []
        self.reads = 0
        self.wall = START
        self.waits = Waits(self._read, Types(), start=START, clock=lambda: self.wall, **options)

    def _read(self) -> list[Mail]:
        self.reads += 1
        return list(self.mail)


def call(ask: str = "1") -> Call:
    made = Call(CallSpec("ask", "ask", {}), f"root/a#{ask}", "root/a", int(ask), "a.py:3 f", "", {}, {}, {})
    made.ask = ask
    return made


def test_an_answer_is_given_to_its_question() -> None:
    bench = Bench()
    bench.waits.add(call("1"), Outside("answer"), 5)
    bench.waits.add(call("2"), Outside("answer"), 6)
    assert bench.waits.look(9) is None
    bench.mail.append(Mail("answer", "2", value="yes"))
    arrival = bench.waits.look(9)
    assert arrival is not None
    assert arrival.call is not None
    assert (arrival.call.ask, arrival.value, arrival.vt, arrival.dur) == ("2", "yes", 9, 3)
    assert arrival.mail is bench.mail[0]
    assert len(bench.waits) == 1
    assert bench.waits.look(10) is None


def test_signals_are_taken_in_their_order_and_once() -> None:
    bench = Bench(taken=["old"])
    bench.mail += [
        Mail("signal", "old", "paid", 0),
        Mail("signal", "a", "other", 1),
        Mail("signal", "b", "paid", 2),
        Mail("signal", "c", "paid", 3),
    ]
    got = []
    for number in "123":
        bench.waits.add(call(number), Outside("signal", "paid"), 0)
        arrival = bench.waits.look(1)
        got.append(arrival and arrival.value)
    assert got == [2, 3, None]


def test_what_reading_an_answer_raises_is_the_error_of_the_call() -> None:
    bench = Bench()

    def read(said: object) -> object:
        raise ValueError(f"not {said}")

    bench.waits.add(call(), Outside("answer", read=read), 0)
    bench.mail.append(Mail("answer", "1", value="x"))
    arrival = bench.waits.look(1)
    assert arrival is not None
    assert (arrival.status, str(arrival.error)) == ("error", "not x")


def test_a_deadline() -> None:
    bench = Bench()
    bench.waits.add(call("1"), Outside("answer", due=START + 50, default=lambda: "nobody"), 0)
    bench.waits.add(call("2"), Outside("answer", due=START + 60), 0)
    bench.waits.add(call("3"), Outside("time", due=START + 70), 0)
    assert bench.waits.look(1) is None
    assert bench.waits.next_due() == 50
    bench.wall = START + 70
    first, second, third = (bench.waits.look(70) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.value, third.value, third.status) == ("nobody", None, "ok")
    assert isinstance(second.error, Expired)
    assert "question 2 of a.py:3 f was not answered in time" in str(second.error)


def test_an_answer_that_came_in_time_counts_though_it_is_read_late() -> None:
    bench = Bench()
    bench.waits.add(call("1"), Outside("answer", due=START + 50, default=lambda: "nobody"), 0)
    bench.mail.append(Mail("answer", "1", value="yes", at=START + 40))
    bench.wall = START + 500
    arrival = bench.waits.look(500)
    assert arrival is not None
    assert arrival.value == "yes"


def test_an_answer_that_came_too_late_is_none() -> None:
    bench = Bench()
    bench.waits.add(call("1"), Outside("answer", due=START + 50, default=lambda: "nobody"), 0)
    bench.mail.append(Mail("answer", "1", value="yes", at=START + 51))
    bench.wall = START + 500
    arrival = bench.waits.look(500)
    assert arrival is not None
    assert (arrival.value, arrival.mail) == ("nobody", None)


def test_where_only_times_are_waited_for_no_mail_is_read() -> None:
    bench = Bench()
    bench.waits.add(call("1"), Outside("time", due=START + 50), 0)
    assert bench.waits.look(1) is None
    assert bench.reads == 0


def test_the_run_is_left_where_it_would_wait_for_long() -> None:
    bench = Bench(patience=10 * SECOND)
    waiting = call("1")
    bench.waits.add(waiting, Outside("answer"), 0)
    with pytest.raises(Suspend) as left:
        bench.waits.rest(None, 0)
    assert left.value.due is None
    with pytest.raises(Suspend) as left:
        bench.waits.rest(11 * SECOND, 0)
    assert left.value.due == START + 11 * SECOND
    assert bench.waits.rest(9 * SECOND, 0) is None
    bench.waits.add(call("2"), Outside("answer", due=START + 5 * SECOND), 0)
    assert bench.waits.rest(9 * SECOND, 0) == 5 * SECOND
    bench.waits.drop(waiting)
    assert len(bench.waits) == 1


def test_a_run_that_nobody_can_resume_says_so() -> None:
    assert "this run cannot be resumed" in str(refuse_wait(call()))
