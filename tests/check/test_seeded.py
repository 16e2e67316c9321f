"""``check`` finds each seeded leak, with file, line and name, and nothing in the clean twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.seeded import SEEDS, Seed
from tests.check.table import GIVEN, checked, doubled, rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text("utf-8")
FACETS = {seed.facet: seed for seed in SEEDS if seed.facet}
"""One agent for each facet, and for what differs in every replay."""


def by_name(seed: Seed) -> str:
    return seed.name


def test_there_are_enough() -> None:
    assert len(SEEDS) >= 30
    assert len({seed.rule for seed in SEEDS if seed.rule}) >= 20


@pytest.mark.parametrize("seed", SEEDS, ids=by_name)
def test_the_source_of_a_leak_is_named_with_file_line_and_name(seed: Seed) -> None:
    found = checked(seed.leak, "--skip", "double-run")
    places = [(one["file"].rpartition("/")[2], one["line"], one["check"]) for one in found["findings"]]
    assert places == ([(seed.leak.name, seed.line, seed.rule)] if seed.rule else [])
    assert all(one["said"] and one["reason"] and one["fix"] and one["function"] for one in found["findings"])


@pytest.mark.parametrize("seed", SEEDS, ids=by_name)
def test_a_clean_twin_has_none(seed: Seed) -> None:
    assert checked(seed.clean, "--skip", "double-run")["findings"] == []


@pytest.mark.parametrize("seed", FACETS.values(), ids=by_name)
def test_a_double_run_names_the_call_and_the_part_of_the_world(seed: Seed, tmp_path: Path) -> None:
    result = doubled(seed, seed.leak, tmp_path)
    (difference,) = result["double_run"]["differences"]
    assert difference["facets"] == [seed.facet]
    assert difference["report"]["call"]["kind"] == "tool"
    (finding,) = result["findings"]
    assert (finding["file"], finding["check"]) == (seed.leak.name, "double-run")
    if seed.rule is None:
        assert finding["line"] == seed.line
    assert result["exit"] == 1
    assert result["double_run"]["chosen"] == "recorded now"


@pytest.mark.parametrize("name", ["set_joined", "umask"])
def test_a_clean_twin_is_the_same_in_every_world(name: str, tmp_path: Path) -> None:
    seed = next(seed for seed in SEEDS if seed.name == name)
    result = doubled(seed, seed.clean, tmp_path)
    assert (result["findings"], result["double_run"]["differences"], result["exit"]) == ([], [], 0)
    assert result["double_run"]["replays"] == 2


def test_the_page_has_the_table() -> None:
    table = [line for line in PAGE.splitlines() if line.startswith("|")]
    for line in rows():
        assert line in table, "python -m tests.check.table prints the table of docs/check.md"


def test_no_finding_in_the_examples() -> None:
    """Their model names are those of the pages: undated."""
    for folder in ("cleanup", "contract", "scripts/refund.py", "scripts/research.py", "workflows"):
        found = checked(ROOT / "examples" / folder, "--skip", "double-run", "--skip", "model-alias")[
            "findings"
        ]
        assert found == [], folder


def test_what_is_given_has_many_orders() -> None:
    assert len(set(GIVEN.split())) > 3
