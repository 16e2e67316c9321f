"""Randomness: a generator of the run for each path, bytes of the run; outside a run nothing changes."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import ssl
import tempfile
import warnings
from typing import Any

import pytest

from agentloom import agent
from agentloom.runtime.guard_install import install
from agentloom.store import MemoryStore

EARLY = random.choice


@pytest.fixture(autouse=True)
def in_place() -> None:
    install()


def test_outside_a_run_randomness_is_the_real_one() -> None:
    random.seed(5)
    first = [random.random(), random.getrandbits(32), random.choice("abc"), EARLY("abc")]
    state = random.getstate()
    random.seed(5)
    assert [random.random(), random.getrandbits(32), random.choice("abc"), EARLY("abc")] == first
    assert random.getstate() == state
    assert random.Random(3).random() == random.Random(3).random()
    assert len({random.Random().random() for _ in range(20)}) == 20
    assert len({os.urandom(16), secrets.token_bytes(16), os.urandom(16)}) == 3
    with pytest.raises(ValueError, match="negative"):
        os.urandom(-1)


@agent(guard="strict")
def draws() -> list[Any]:
    own = [random.random(), EARLY(range(10**9)), random.randint(1, 10**9)]
    random.seed(11)
    seeded = [random.random() for _ in range(2)]
    state = random.getstate()
    again = random.random()
    random.setstate(state)
    assert random.random() == again
    return [
        own,
        seeded,
        random.Random().random(),
        random.SystemRandom().random(),
        secrets.token_hex(4),
        os.urandom(0),
    ]


def test_a_run_draws_from_generators_of_its_own() -> None:
    before = random.getstate()
    trace, other = draws.run(seed=1, store=MemoryStore()), draws.run(seed=1, store=MemoryStore())
    unseeded = draws.run(store=MemoryStore())
    assert random.getstate() == before, "a run moved the generator of the process"
    assert trace.replay().verdict == unseeded.replay().verdict == "identical"
    one, two, three = (run.output for run in (trace, other, unseeded))
    assert one[0] == two[0] != three[0], "the module's draws follow the seed"
    seeded = random.Random(11)
    assert one[1] == two[1] == three[1] == [seeded.random(), seeded.random()], "as seeded by the agent itself"
    for place in (2, 3, 4):
        assert len({one[place], two[place], three[place]}) == 3, "bytes never follow from the seed"


@agent(guard="strict")
async def branches(extra: int) -> list[float]:
    async def branch(draws: int) -> float:
        await asyncio.sleep(0)
        drawn = [random.random() for _ in range(draws + 1)]
        return drawn[0]

    return list(await asyncio.gather(branch(0), branch(extra), branch(0)))


def test_a_draw_more_in_one_branch_shifts_nothing_in_another() -> None:
    assert (
        branches.run(0, seed=4, store=MemoryStore()).output
        == branches.run(5, seed=4, store=MemoryStore()).output
    )


@agent(guard="virtual")
def temporary() -> str:
    return os.path.basename(tempfile.mktemp())


def test_names_of_temporary_files_are_the_runs_own() -> None:
    trace = temporary.run(store=MemoryStore())
    assert trace.replay().verdict == "identical"
    assert trace.output != temporary.run(store=MemoryStore()).output


@pytest.mark.skipif(not hasattr(ssl, "RAND_pseudo_bytes"), reason="gone since Python 3.12")
def test_bytes_of_openssl_that_are_no_longer_recommended() -> None:
    @agent
    def draws() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ssl.RAND_pseudo_bytes(8)  # type: ignore[attr-defined,unused-ignore]

    trace = draws.run(store=MemoryStore())
    assert [type(one) for one in trace.output] == [bytes, bool]
    assert trace.replay().verdict == "identical"
