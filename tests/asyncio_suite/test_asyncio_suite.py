"""CPython's own asyncio tests pass on the inner loop, on this interpreter and on every other one found."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from tests.asyncio_suite import run as suite

_HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_cpythons_own_tests_pass(version: str) -> None:
    python = suite.interpreters().get(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    if version == _HERE and importlib.util.find_spec("test.test_asyncio") is None:
        pytest.skip("this Python came without its test package")
    found = suite.run(python)
    assert suite.problems(found) == []
    assert found["ran"] > 1000


def test_a_failure_and_too_many_skips_are_problems() -> None:
    results: dict[str, Any] = {
        "python": "3.x",
        "ran": 8,
        "failed": [{"test": "a.B.c", "text": "AssertionError"}],
        "skipped": [{"test": "a.B.d", "why": "because"}],
        "not_here": [],
        "seconds": 0.0,
    }
    assert suite.problems(results) == [
        "a.B.c: AssertionError",
        "11.1% of the chosen tests are skipped; at most 10% may be",
    ]
    assert suite.problems({**results, "failed": [], "skipped": [], "ran": 0}) == ["no test ran"]
