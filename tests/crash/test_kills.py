"""Real processes are killed at random instants and at each boundary, and their runs resumed until they end.

``python -m tests.crash.harness`` is the long form: a thousand kills at random instants, a hundred at each boundary.
"""

from __future__ import annotations

import os

import pytest

from tests.crash.harness import BOUNDARIES, several

pytestmark = [
    pytest.mark.skipif(
        not hasattr(os, "fork") or not hasattr(os, "pidfd_open"), reason="needs fork and pidfd (Linux)"
    ),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.mark.parametrize(("how", "kills"), [("random", 16), *((boundary, 5) for boundary in BOUNDARIES)])
def test_nothing_is_lost_and_nothing_done_twice(how: str, kills: int) -> None:
    killed, _, lost = several(how, kills, first=2 * BOUNDARIES.index(how) if how in BOUNDARIES else 0)
    assert lost == []  # each with its seed
    assert killed[how] >= kills


def test_calls_in_doubt_are_asked_about() -> None:
    """Otherwise the boundaries were not met."""
    _, asked, lost = several("effect and outcome", 6, first=2)
    assert lost == []
    assert asked >= 3
