"""Deadlines in virtual time: never before what was asked for, and out of reach where that is too far away."""

from __future__ import annotations

import math

import pytest

from agentloom.runtime.deadlines import NEVER_NS, deadline_ns


@pytest.mark.parametrize("when", [0.0, 0.1, 1e-9, 12.3456789, 1.7e9 + 0.1, 2**31 + 0.3])
def test_the_time_has_come_when_it_fires(when: float) -> None:
    deadline = deadline_ns(when)
    assert deadline / 1e9 >= when
    assert deadline - 10**3 <= when * 1e9 + 10**3


def test_too_far_away_is_never_and_no_number_is_an_error() -> None:
    assert deadline_ns(math.inf) == deadline_ns(1e18) == NEVER_NS
    with pytest.raises(ValueError, match="NaN"):
        deadline_ns(math.nan)
