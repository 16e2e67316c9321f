"""A run under way: its generators of random draws, one for each path."""

from __future__ import annotations

import random

from tests.runtime.fakes import Bench


def draws(seed: int | None, path: str, count: int = 3) -> list[float]:
    session = Bench().session
    session.seed = seed
    return [session.random_for(path).random() for _ in range(count)]


def test_a_seed_fixes_the_draws_of_a_path_in_every_process() -> None:
    assert draws(7, "root/a") == draws(7, "root/a")
    assert draws(7, "root/a")[0] == 0.45480568003656063


def test_paths_and_seeds_draw_apart() -> None:
    assert len({tuple(draws(seed, path)) for seed in (7, 8) for path in ("root/a", "root/b")}) == 4


def test_a_draw_elsewhere_shifts_nothing() -> None:
    session = Bench().session
    first = session.random_for("root/a").random()
    session.random_for("root/b").random()
    assert [first, session.random_for("root/a").random()] == draws(3, "root/a", 2)


def test_without_a_seed_draws_come_from_the_system() -> None:
    session = Bench().session
    session.seed = None
    assert isinstance(session.random_for("root/a"), random.SystemRandom)


def test_the_root_path_is_the_agents_name() -> None:
    assert Bench().session.root.path == "root/probe"
