"""A module that takes its time, and reads the clock meanwhile."""

from __future__ import annotations

import time

from tests.guard.ticking import compute

LOADED: list[float] = []
for _ in range(3):
    compute()
    LOADED.append(time.monotonic())
