"""Every case of every seam: bare, recording and replaying are equal. And the contract itself can fail."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters import sdks
from agentloom.testing.sdk_contract import Case, Seam, missing, prove, table
from tests.adapters.sdk_table import seams

SEAMS = seams()
CASES = [(seam, case) for seam in SEAMS for case in seam.cases]


@pytest.fixture(autouse=True, scope="module")
def watched() -> Iterator[None]:
    sdks.watch()
    gc.collect()
    gc.freeze()  # what the SDKs are made of need not be gone through after each case
    yield
    gc.unfreeze()


@pytest.fixture
def _left_to_finalisers() -> Iterator[None]:
    """SDKs leave connections to finalisers, bare too: google-genai that of a client of the caller's, litellm those
    that it caches for each loop. They are collected here, and not in another test."""
    yield
    gc.collect()


@pytest.mark.filterwarnings(
    "ignore"
)  # SDKs warn when they are imported, of their libraries, and when collected
@pytest.mark.usefixtures("_left_to_finalisers")
@pytest.mark.parametrize(
    ("seam", "case"),
    [
        pytest.param(seam, case, marks=[pytest.mark.slow] if "stdio" in seam.name else [])  # starts processes
        for seam, case in CASES
    ],
    ids=[f"{seam.name}: {case.title} {number}" for number, (seam, case) in enumerate(CASES)],
)
def test_a_program_sees_the_same_bare_recording_and_replaying(seam: Seam, case: Case) -> None:
    assert prove(case).problem == ""


def test_no_seam_leaves_an_aspect_out() -> None:
    assert {seam.name: missing(seam) for seam in SEAMS} == {seam.name: [] for seam in SEAMS}


NUMBERS: Iterator[int] = itertools.count()


def counting(_: str) -> Any:
    return {"number": [next(NUMBERS)]}


def test_a_difference_is_told_with_its_place() -> None:
    problem = prove(Case("sync", counting, [])).problem
    assert problem.startswith("recording: number[0] was ")


def test_an_uncovered_aspect_is_told() -> None:
    lines = list(table([Seam("thin", [], lacks={"retry": "none"})]))
    assert "| thin | missing | missing | missing | missing | missing | n/a | missing | missing |" in lines
    assert lines[-1] == "  thin: raw is not covered"
