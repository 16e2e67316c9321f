"""Random programs of threads: a replay written down again is the recorded trace, byte for byte, also elsewhere.

python -m tests.simulation.test_thread_programs [COUNT] [FIRST_SEED]
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentloom.format.journal import check
from agentloom.runtime.recorder import RunOptions, begin, record_async, record_blocking
from agentloom.store import MemoryStore
from tests.simulation import harness
from tests.simulation.rewriting import rewritten, salted
from tests.simulation.thread_programs import KINDS, as_agent, generate

COUNT = 40
CODE: Any = {
    "entry": {"module": "tests", "qualname": "threads", "file": None, "kind": "agent"},
    "modules": {},
}


def record(seed: int, *, sync: bool, again: int = 0, guard: str = "strict") -> tuple[list[Any], bytes]:
    """What the program saw, and the trace. ``again`` makes another run of the same program."""
    logs: list[list[Any]] = []
    agent = as_agent(seed, random.Random(f"latencies {seed} {again}"), logs, sync=sync)
    store = MemoryStore()
    options = RunOptions(seed=seed, guard=guard)
    if sync:
        recording = begin(agent, (), {}, store=store, options=options, outer=None, code=CODE)
        record_blocking(recording, agent)
    else:

        async def recorded() -> Any:
            made = begin(
                agent, (), {}, store=store, options=options, outer=asyncio.get_running_loop(), code=CODE
            )
            await record_async(made, agent)
            return made

        recording = asyncio.run(recorded())
    return logs[0], store.read(recording.run_id)


def equal(seed: int, *, sync: bool) -> int:
    """Record and replay the program of ``seed``; how many calls it made."""
    with salted():
        log, data = record(seed, sync=sync)
    verdict = check(data)
    assert verdict.ok, f"seed {seed}: {verdict}"
    logs: list[list[Any]] = []
    assert rewritten(data, as_agent(seed, random.Random(0), logs, sync=sync)) == data, f"seed {seed}"
    assert logs == [log], f"seed {seed}"
    return verdict.calls


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_a_replay_written_down_again_is_the_trace(sync: bool) -> None:
    print(f"seeds 0 to {COUNT - 1}")
    with harness.quiet():
        calls = [equal(seed, sync=sync) for seed in range(COUNT)]
    assert sum(calls) > 5 * COUNT


def test_the_programs_hold_every_construct() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(COUNT):
        found = list(generate(seed))
        for node in found:
            kinds[node.kind] += 1
            found.extend(inner for body in node.bodies for inner in body)
    assert all(kinds[kind] > 2 for kind in KINDS), kinds


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_live_runs_differ(sync: bool) -> None:
    """Otherwise equal replays would prove nothing."""
    differ = sum(
        _without_times(record(seed, sync=sync)[0]) != _without_times(record(seed, sync=sync, again=1)[0])
        for seed in range(30)
    )
    assert differ >= 12


def _without_times(log: list[Any]) -> list[Any]:
    return [facts[:1] if facts[0] == "ambient" else [str(facts[0])] for facts in log]


def test_they_replay_in_another_process_under_another_hash_seed(tmp_path: Path) -> None:
    seeds = range(15)
    for seed in seeds:
        for sync in (True, False):
            (tmp_path / f"{seed}-{sync}").write_bytes(record(seed, sync=sync)[1])
    program = (
        "import sys, random; from pathlib import Path; from agentloom.format.journal import Journal\n"
        "from agentloom.replay.replayer import replay; from tests.simulation.thread_programs import as_agent\n"
        "for file in sorted(Path(sys.argv[1]).iterdir()):\n"
        "    seed, sync = file.name.split('-')\n"
        "    agent = as_agent(int(seed), random.Random(0), [], sync=sync == 'True')\n"
        "    report = replay(Journal.parse(file.read_bytes()), agent)\n"
        "    assert report.verdict == 'identical', f'{file.name}: {report}'\n"
        "print('all')\n"
    )
    env = dict(os.environ, PYTHONHASHSEED="77")
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "all\n", done.stderr[-3000:]


def main(count: int = 1000, first: int = 0) -> None:
    """Check ``count`` programs, each as a sync and as an async agent."""
    began, calls = time.monotonic(), 0
    print(f"seeds {first} to {first + count - 1}, Python {sys.version.split()[0]}", flush=True)
    for seed in range(first, first + count):
        for sync in (True, False):
            calls += equal(seed, sync=sync)
    print(f"{count} programs, twice each: equal ({calls:,} calls, {time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    with harness.quiet():
        main(*(int(argument) for argument in sys.argv[1:]))
