"""Worlds: what each facet sets, and what none touches."""

from __future__ import annotations

import os
from pathlib import Path

from agentloom.cli.checks.worlds import FACETS, worlds

HERE = {
    "PATH": "/bin",
    "PYTHONPATH": "src",
    "LC_TIME": "xx",
    "PYTHONHASHSEED": "1",
    "NUMBER": "7",
    "LC_ALL": "C.UTF-8",
}


def test_the_same_count_gives_the_same_worlds(tmp_path: Path) -> None:
    first, second = (worlds(9, str(tmp_path), ["NUMBER"], HERE) for _ in range(2))
    assert first == second
    assert len({world.seed for world in first}) == 9
    assert all(os.path.isdir(world.folder) and not os.listdir(world.folder) for world in first)
    assert first[0].seed != "1"
    assert first[0].locale["LC_ALL"] != "C.UTF-8"


def test_a_facet_sets_its_own_and_nothing_else(tmp_path: Path) -> None:
    world = worlds(2, str(tmp_path), ["NUMBER", "WORD", "OPENAI_API_KEY", "AGENTLOOM"], HERE)[0]
    changed = {
        facet: set(world.environ(HERE, [facet]).items()) ^ set(world.environ(HERE, []).items())
        for facet in FACETS
    }
    names = {facet: {name for name, _ in pairs} for facet, pairs in changed.items()}
    assert names["hash seed"] == {"PYTHONHASHSEED"}
    assert names["time zone"] == {"TZ"}
    assert {"LC_ALL", "LANG", "LC_TIME"} <= names["locale"]
    assert {"HOME", "USER", "TMPDIR", "COLUMNS", "NUMBER", "WORD"} <= names["environment"]
    assert not {"PATH", "OPENAI_API_KEY", "AGENTLOOM"} & names["environment"]
    assert all(not names[facet] for facet in ("working folder", "arguments", "umask"))


def test_surroundings(tmp_path: Path) -> None:
    world = worlds(2, str(tmp_path), (), HERE)[1]
    none, every = world.surroundings([]), world.surroundings(FACETS)
    assert (none.folder, none.umask, none.arguments, none.quiet) == (None, -1, (), True)
    assert (every.folder, every.umask, every.arguments) == (world.folder, world.umask, world.arguments)
    assert world.environ(HERE, [])["PYTHONPATH"] == os.path.abspath("src")
    assert world.to_json()["umask"] == f"{world.umask:03o}"


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    made = worlds(3, str(tmp_path), ["NUMBER", "WORD"], {**HERE, "WORD": "x"})
    assert [world.variables["NUMBER"] for world in made] == ["8", "9", "10"]
    assert made[0].variables["WORD"] == "x-world-0"
