"""Deadlines in virtual time."""

from __future__ import annotations

import math

__all__ = ["NEVER_NS", "deadline_ns"]

NEVER_NS = 2**63 - 1
"""Deadlines from here on (292 years) never fire; ``asyncio.sleep(math.inf)`` is one."""


def deadline_ns(when: float) -> int:
    """Nanoseconds for ``when`` seconds, such that ``when <= deadline / 1e9``; `NEVER_NS` when out of reach."""
    if math.isnan(when):  # TypeError for None, as on the stock loop
        raise ValueError("a timer cannot be scheduled at NaN")
    if when >= NEVER_NS / 1e9:
        return NEVER_NS
    deadline = math.ceil(when * 1e9)
    step = 1
    while deadline / 1e9 < when:  # floats are coarser than a nanosecond after 104 days
        deadline += step
        step *= 2
    return deadline
