"""Each bug that is put into a copy of the product is found by its proof. ``python -m tests.seeded_bugs`` shows by what.

A bug whose place is gone from the source fails here: give it a new place, or another bug of its kind.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seeded_bugs.__main__ import main
from tests.seeded_bugs.bugs import BUGS, PROOFS, Bug
from tests.seeded_bugs.hunt import hunt, planted

BUDGET = 30
"""Seconds of the processor for one of them; most take 2."""


@pytest.fixture
def budget() -> Iterator[None]:
    began = spent()
    yield
    assert spent() - began < BUDGET, "give it a quicker proof"


def spent() -> float:
    """Seconds that the proofs have taken so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_the_bug_is_found(bug: Bug, tmp_path: Path, budget: None) -> None:
    found = hunt(bug, tmp_path)
    print(f"{found.proof} {found.seconds:.1f} s {found.said}")
    assert found.proof is not None, f"{bug.name}: {PROOFS[bug.proof]} did not notice"


def test_there_are_enough_of_them_and_each_has_its_place(tmp_path: Path) -> None:
    assert len(BUGS) >= 20
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for number, bug in enumerate(BUGS):
        planted(bug, tmp_path / str(number))
        assert bug.proof in PROOFS


def test_a_copy_without_a_bug_passes(tmp_path: Path) -> None:
    """Otherwise every proof would find everything."""
    from tests.seeded_bugs.hunt import failure_of

    assert failure_of(PROOFS["vectors"], planted(None, tmp_path)) is None
    assert failure_of(PROOFS["fields"], tmp_path / "src") is None


def test_a_word_that_no_bug_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no such bug", BUGS[0].name]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("no bug has 'no such bug' in its name; they are:\n  " + BUGS[0].name)
    assert said.out == ""
