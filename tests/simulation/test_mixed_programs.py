"""Random programs of what agents are made of: a replay written down again is the recorded trace, byte for byte."""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections import Counter
from typing import Any

import pytest

from agentloom.format.journal import Journal, check
from agentloom.format.values import decode
from agentloom.replay.recording import Recording
from agentloom.replay.replayer import replay
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.engine import Engine
from agentloom.runtime.loop import InnerLoop
from agentloom.runtime.recorder import RunOptions, begin, record_async, record_blocking
from agentloom.store import MemoryStore
from tests.simulation import engine_harness, harness
from tests.simulation import programs as concurrent
from tests.simulation.mixed_programs import KINDS, as_agent, generate
from tests.simulation.rewriting import rewritten, salted

COUNT = 150
CODE: Any = {"entry": {"module": "tests", "qualname": "mixed", "file": None, "kind": "agent"}, "modules": {}}


def record(seed: int, *, sync: bool, again: int = 0) -> tuple[list[Any], bytes]:
    """What the program saw, and the trace. ``again`` makes another run of the same program."""
    logs: list[list[Any]] = []
    agent = as_agent(seed, random.Random(f"latencies {seed} {again}"), logs, sync=sync)
    store = MemoryStore()
    options = RunOptions(seed=seed)
    if sync:
        recording = begin(agent, (), {}, store=store, options=options, outer=None, code=CODE)
        record_blocking(recording, agent)
    else:
        outer = InnerLoop()  # host work in virtual time: its order is the seed's

        async def recorded() -> Any:
            made = begin(
                agent, (), {}, store=store, options=options, outer=asyncio.get_running_loop(), code=CODE,
                clock=lambda: outer.vt,
            )  # fmt: skip
            await record_async(made, agent)
            return made

        try:
            recording = outer.run_until_complete(recorded())
        finally:
            outer.close()
    return logs[0], store.read(recording.run_id)


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_a_replay_written_down_again_is_the_trace(sync: bool) -> None:
    print(f"seeds 0 to {COUNT - 1}")
    kinds: Counter[str] = Counter()
    with harness.quiet():
        for seed in range(COUNT):
            with salted():
                log, data = record(seed, sync=sync)
            verdict = check(data)
            assert verdict.ok, f"seed {seed}: {verdict}"
            logs: list[list[Any]] = []
            agent = as_agent(seed, random.Random(0), logs, sync=sync)
            assert rewritten(data, agent) == data, f"seed {seed}"
            assert logs == [log], f"seed {seed}"
            kinds.update({str(node.kind) for node in walked(generate(seed))})
    assert all(kinds[kind] > 0.05 * COUNT for kind in KINDS), kinds


def walked(nodes: Any) -> list[Any]:
    found = list(nodes)
    for node in found:
        found.extend(node.children)
    return found


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_the_trace_says_what_was_asked_and_how_it_ended(sync: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal replay alone would not: what is wrong in the trace in the same way would go unseen."""
    asked: list[Any] = []
    real = Engine.begin

    def begin(self: Engine, spec: CallSpec, scope: Any, **more: Any) -> Any:
        asked.append(copy.deepcopy(spec.request))
        return real(self, spec, scope, **more)

    monkeypatch.setattr(Engine, "begin", begin)
    ends: Counter[str] = Counter()
    for seed in range(60):
        asked.clear()
        log, data = record(seed, sync=sync)
        recording = Recording.from_journal(Journal.parse(data))
        assert [decode(recording.request(call), None) for call in recording.calls] == asked, f"seed {seed}"
        seen = Counter(str(facts[0]) for facts in log)
        streams = [call for call in recording.calls if call.name.startswith(("stream", "leave", "abandon"))]
        closed = sum(call.status == "closed" for call in streams)
        cancelled = sum(
            call.status == "cancelled" and call not in streams
            for call in recording.calls
            if call.type in ("tool", "model")
        )
        assert (closed, cancelled) == (seen["left"], seen["cancelled"]), f"seed {seed}"
        assert sum(call.chunks for call in streams) == seen["chunk"], f"seed {seed}"
        ends.update({"left": closed, "cancelled": cancelled})
    assert ends["left"] > 10
    assert sync or ends["cancelled"] > 10


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_live_runs_differ(sync: bool) -> None:
    """Otherwise equal replays would prove nothing."""
    with harness.quiet():
        differ = sum(record(seed, sync=sync)[0] != record(seed, sync=sync, again=1)[0] for seed in range(30))
    assert differ >= (10 if sync else 12)


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_a_replay_of_another_program_is_noticed(sync: bool) -> None:
    """Seed n + 1 does not pass for seed n."""
    for seed in range(12):
        _, data = record(seed, sync=sync)
        report = replay(Journal.parse(data), as_agent(seed + 1, random.Random(0), [], sync=sync))
        assert report.verdict == "diverged"


def test_concurrent_programs_too() -> None:
    """The programs of ``programs.py``, whose order is everything."""
    with harness.quiet():
        for seed in range(100):
            program = concurrent.generate(seed)
            with salted():
                log, data = engine_harness.run_recorded(program, random.Random(f"latencies {seed}"))
            logs: list[harness.Log] = []
            assert rewritten(data, engine_harness.agent_for(program, random.Random(0), logs)) == data, (
                f"seed {seed}"
            )
            assert logs == [log], f"seed {seed}"


def test_it_takes_milliseconds() -> None:
    """A program of the generator is worth running: more than a handful of calls each."""
    began = time.monotonic()
    calls = [check(record(seed, sync=False)[1]).calls for seed in range(20)]
    assert sum(calls) > 20 * 8, (calls, time.monotonic() - began)
