"""Random workflows: what ran is what a simple model says, and each replays as it was recorded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentloom import Trace
from agentloom.events import StepFinished
from agentloom.store import MemoryStore
from tests.api.workflow_programs import Broken, Program, expected, generate
from tests.docs.blocks import ROOT

SEEDS = range(300)
"""Each seed is a program; `pytest -k "[317]"` runs one."""


def _recorded(program: Program, store: MemoryStore) -> BaseException | None:
    try:
        program.workflow().run("go", seed=program.seed, store=store)
    except Broken as error:
        return error
    return None


@pytest.mark.parametrize("block", range(0, len(SEEDS), 50))
def test_a_run_ends_as_the_model_says_and_replays(block: int) -> None:
    for seed in SEEDS[block : block + 50]:
        program = generate(seed)
        wanted = expected(program)
        store = MemoryStore()
        error = _recorded(program, store)
        trace = Trace.open("last", store)
        if wanted.failing:
            assert error is not None, f"seed {seed}: {program}"
            assert str(error) in wanted.failing, f"seed {seed}: {program}"
            assert f"in step {error.args[0]!r} of workflow" in " ".join(error.__notes__), f"seed {seed}"
        else:
            assert error is None, f"seed {seed}: {program}"
            assert trace.output == wanted.output, f"seed {seed}: {program}"
        report = trace.replay(agent=program.workflow(), check=False)
        assert report.verdict == "identical", f"seed {seed}: {report}"


def test_steps_of_loops_run_as_often_as_the_model_says() -> None:
    seen = 0
    for seed in SEEDS[:150]:
        program = generate(seed)
        wanted = expected(program)
        if wanted.failing:
            continue
        visits: dict[str, int] = {}
        results: dict[str, object] = {}
        for event in program.workflow().stream_sync("go", store=MemoryStore()):
            if isinstance(event, StepFinished) and "/" not in event.step and event.item is None:
                visits[event.step] = event.visit
                results[event.step] = event.value
        assert {name: results[name] for name in wanted.results} == wanted.results, f"seed {seed}: {program}"
        for node in program.nodes:
            for name in program.between(node.name, node.back[0]) if node.back else ():
                seen += 1
                assert visits.get(name, 0) <= wanted.visits[name], f"seed {seed} {name}: {program}"
                if name in results and name in wanted.results:
                    assert visits[name] == wanted.visits[name], f"seed {seed} {name}: {program}"
    assert seen > 20


_PRINT = """
import hashlib
from agentloom import Trace
from agentloom.store import MemoryStore
from tests.api.workflow_programs import Broken, generate

found = hashlib.sha256()
for seed in range(25):
    program, store = generate(seed), MemoryStore()
    try:
        program.workflow().run("go", seed=1, store=store)
    except Broken:
        pass
    for entry in Trace.open("last", store).journal.entries:
        facts = [entry.get(name) for name in ("kind", "call", "d", "name", "goto", "others", "reads", "status")]
        found.update(repr(facts).encode())
print(found.hexdigest())
"""


def test_entries_do_not_depend_on_hash_seed_zone_or_locale() -> None:
    printed = set[str]()
    for number, zone, locale in (("0", "UTC", "C"), ("1", "Asia/Tokyo", "C.UTF-8")):
        done = subprocess.run(
            [sys.executable, "-c", _PRINT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": number, "TZ": zone, "LC_ALL": locale},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        printed.add(done.stdout)
    assert len(printed) == 1
