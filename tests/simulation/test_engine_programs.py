"""Random concurrent programs through the real engine: recorded, replayed from the trace, equal; and the check can fail.

`python -m tests.simulation.engine_harness 10000` is the long form of the first test.
"""

from __future__ import annotations

import random

import pytest

from agentloom.errors import ControlFlow, LoomError
from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording
from agentloom.replay.replayer import run_agent, session_for
from agentloom.replay.source import ReplaySource
from agentloom.runtime.engine import Delivery, Engine
from tests.simulation import engine_harness as engine
from tests.simulation import harness
from tests.simulation.programs import generate

SEEDS = range(300)
EVENTS = ("outcome", "chunk", "timer")


def test_programs_replay_equal_from_their_traces() -> None:
    tally = harness.check(SEEDS, engine.run_recorded, engine.run_replayed)
    assert tally.unequal == []  # seeds
    assert tally.rare() == []


def test_programs_recorded_in_real_time_replay_equal() -> None:
    tally = harness.check(range(5000, 5025), engine.run_recorded_really, engine.run_replayed)
    assert tally.unequal == []  # seeds


def test_live_runs_of_one_program_differ() -> None:
    """Otherwise equal replays would prove nothing."""
    differ = 0
    with harness.quiet():
        for seed in range(60):
            logs = [engine.run_recorded(generate(seed), random.Random(f"{seed} {i}"))[0] for i in range(2)]
            differ += logs[0] != logs[1]
    assert differ >= 36


def _swapped(recording: Recording, rng: random.Random) -> bool:
    """Swap two neighbouring deliveries of different calls in the recording; whether there were two."""
    steps = recording.steps
    places = [
        i for i in range(len(steps) - 1)
        if steps[i].kind in EVENTS and steps[i + 1].kind in EVENTS and steps[i].call is not steps[i + 1].call
    ]  # fmt: skip
    if not places:
        return False
    at = rng.choice(places)
    steps[at], steps[at + 1] = steps[at + 1], steps[at]
    return True


def test_swapping_two_neighbouring_deliveries_is_noticed() -> None:
    swaps = unnoticed = 0
    with harness.quiet():
        for seed in range(200):
            program = generate(seed)
            log, data = engine.run_recorded(program, random.Random(seed))
            recording = Recording.from_journal(Journal.parse(data))
            if not _swapped(recording, random.Random(seed)):
                continue
            swaps += 1
            logs: list[harness.Log] = []
            source = ReplaySource(recording)
            agent = engine.agent_for(program, random.Random(0), logs)
            try:
                run_agent(session_for(recording, source, "."), source, agent, {"args": [], "kwargs": {}})
            except (LoomError, ControlFlow):
                continue
            unnoticed += source.finding is None and logs == [log]
    assert swaps > 50
    assert unnoticed < 0.35 * swaps, f"{unnoticed} of {swaps} swaps changed nothing that the program saw"


def test_a_dropped_delivery_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug seeded into the engine: an outcome is decoded from the wrong payload now and then."""
    real = Engine._deliver_call

    def wrong(self: Engine, arrival: object) -> Delivery:
        delivery = real(self, arrival)  # type: ignore[arg-type]
        if self.deliveries % 7 == 0 and isinstance(delivery.value, int):
            delivery.value += 1
        return delivery

    data = engine.run_recorded(generate(3), random.Random(3))[1]
    monkeypatch.setattr(Engine, "_deliver_call", wrong)
    with pytest.raises(harness.Diverged):
        engine.run_replayed(generate(3), data)
