"""A replay's clock: ticks come at their reading, or are passed; nothing diverges by them, nothing waits for ever."""

from __future__ import annotations

import pytest

from agentloom.errors import Diverged
from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording, Tick
from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival
from agentloom.runtime.source import TICK
from tests.replay.benches import answered, find, record, replaying
from tests.runtime.fakes import Bench

MS = 1_000_000


def read(bench: Bench, times: int) -> None:
    bench.engine.reads += times


def ticking(bench: Bench) -> None:
    """A tick before each of two calls, two between a request and its outcome, one at the end."""
    read(bench, 3)
    bench.engine.tick(20 * MS)
    answered(bench, "one")
    read(bench, 5)
    call = bench.begin(q="two")
    read(bench, 1)
    bench.engine.tick(40 * MS)
    read(bench, 2)
    bench.engine.tick(60 * MS)
    bench.engine.deliver(Arrival("outcome", call, vt=61 * MS))
    read(bench, 1)
    bench.engine.tick(80 * MS)


@pytest.fixture
def recording() -> Recording:
    return record(ticking)


def test_ticks_are_no_steps(recording: Recording) -> None:
    assert recording.ticks == [
        Tick(0, 3, 20 * MS), Tick(3, 6, 40 * MS), Tick(3, 2, 60 * MS), Tick(4, 1, 80 * MS),
    ]  # fmt: skip
    assert [step.kind for step in recording.steps] == ["request", "outcome"] * 2


class Clock:
    """What the guard does with a source, at each reading."""

    def __init__(self, recording: Recording) -> None:
        self.source, self.session = replaying(recording)
        self.engine = self.session.engine

    def look(self, times: int = 1) -> list[int]:
        """The ticks, in ms, that so many readings deliver; 0 for a reading without one."""
        found: list[int] = []
        for _ in range(times):
            self.engine.reads += 1
            passed = self.source.tick(self.engine.vt, self.engine.reads)
            if passed is not None:
                self.engine.tick(passed)
            found.append((passed or 0) // MS)
        return found

    def call(self, q: str) -> None:
        call = find(self.session, q)
        self.engine.deliver(self.source.inline(call, lambda: None))


def test_they_come_at_their_reading(recording: Recording) -> None:
    clock = Clock(recording)
    assert clock.look(4) == [0, 0, 20, 0]
    clock.call("one")
    assert clock.look(5) == [0] * 5
    call = find(clock.session, "two")
    assert clock.look(4) == [40, 0, 60, 0]
    clock.engine.deliver(clock.source.inline(call, lambda: None))
    assert clock.look(3) == [80, 0, 0]
    clock.engine.finish("completed", None)
    assert clock.source.complete


@pytest.mark.parametrize("more", [0, 1, 7])
def test_code_that_reads_less_often_passes_them(recording: Recording, more: int) -> None:
    clock = Clock(recording)
    call = find(clock.session, "one")
    assert clock.engine.vt == 0
    assert clock.look(more) == [20, *[0] * 6][:more]
    clock.engine.deliver(clock.source.inline(call, lambda: None))
    assert clock.engine.vt == 20 * MS
    clock.call("two")
    assert clock.engine.vt == 61 * MS
    assert clock.look(2) == [80, 0], "what was passed is behind, and what is due comes"
    clock.engine.finish("completed", None)
    assert clock.source.complete


def test_code_that_reads_more_often_gets_them_at_their_number(recording: Recording) -> None:
    clock = Clock(recording)
    assert clock.look(50) == [0, 0, 20, *[0] * 47]
    clock.call("one")
    assert clock.look(50) == [0] * 50, "not before what came before it"
    find(clock.session, "two")
    assert clock.look(4) == [40, 0, 60, 0]


def test_a_timer_may_be_late_by_as_much_as_a_tick_moved_the_clock() -> None:
    def act(bench: Bench) -> None:
        read(bench, 9)
        bench.engine.tick(30 * MS)
        bench.engine.deliver(Arrival("timer", vt=100 * MS))

    clock = Clock(record(act))
    with pytest.raises(Diverged, match="now the first one is due at"):
        clock.source.poll(110 * MS)
    clock = Clock(record(act))
    assert clock.look(9)[-1] == 30
    assert clock.source.poll(130 * MS) is not None
    clock = Clock(record(act))
    assert clock.look(9)[-1] == 30
    with pytest.raises(Diverged, match="now the first one is due at"):
        clock.source.poll(131 * MS)


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [5]
    monkeypatch.setattr("agentloom.replay.patience._monotonic_ns", lambda: now[0])
    return now


def test_after_a_verdict_time_goes_by_itself(recording: Recording, real: list[int]) -> None:
    clock = Clock(recording)
    with pytest.raises(Diverged):
        clock.call("another")
    assert clock.source.tick(70, 1) is None
    real[0] += TICK
    assert clock.source.tick(70, 2) is None
    real[0] += 1
    assert clock.source.tick(70, 3) == 70 + TICK + 1


def said(clock: Clock) -> str:
    return clock.source.finding.message if clock.source.finding is not None else ""


def test_who_waits_for_what_was_not_recorded_gets_a_verdict(recording: Recording, real: list[int]) -> None:
    clock = Clock(recording)
    clock.look(3)
    for _ in range(15):
        real[0] += 60_000 * MS  # each a pause like one in a debugger
        assert clock.look(4) == [0] * 4
    real[0] += 1_900 * MS
    assert clock.look(4) == [0] * 4
    assert said(clock) == ""
    real[0] += 1_000 * MS
    clock.look(4)
    assert said(clock).startswith("The code waits here for its clock to go on")
    assert "then call 1 (tool find) came next" in said(clock)
    assert clock.look() == [0]
    real[0] += 11 * MS
    assert clock.look() == [31], "so that it ends"


def test_a_replay_on_a_slow_machine_is_no_such_wait(recording: Recording, real: list[int]) -> None:
    clock = Clock(recording)
    shown = 0
    for number in range(1, 3):
        clock.source.tick(shown, number)
    for _ in range(100_000):
        real[0] += MS  # a thousand times slower than a reading was
        shown += 1_000
        clock.source.tick(shown, 4)
    assert clock.source.finding is None


def test_traces_without_ticks_know_no_impatience(real: list[int]) -> None:
    clock = Clock(record(lambda bench: answered(bench, "one")))
    for _ in range(100):
        real[0] += 60_000 * MS
        assert clock.look(4) == [0] * 4
    assert clock.source.finding is None


def test_the_vector_is_read() -> None:
    with open("spec/vectors/v1/valid/ticks.loom", "rb") as file:
        made = Recording.from_journal(Journal.parse(file.read()))
    assert [tick.reads for tick in made.ticks] == [3, 1, 900, 0]
    assert ReplaySource(made).tick(0, 3) == 50 * MS
