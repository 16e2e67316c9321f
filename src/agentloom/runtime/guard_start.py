"""The guard of a run that begins: fresh for a recording, from the trace for a replay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

from agentloom.format.values import Tree
from agentloom.runtime.guard import ENTROPY_BYTES, OFF, Guard, GuardPolicy, policy_facts

__all__ = ["REAL_CLOCKS", "REAL_FOLDER", "begins", "guard_for_recording", "guard_for_replay"]

_urandom, _time_ns, _monotonic_ns = os.urandom, time.time_ns, time.monotonic_ns
REAL_FOLDER = os.getcwd
"""``os.getcwd`` as it was when agentloom was imported."""

_CLOCKS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "sleep", "gmtime",
    "localtime", "ctime", "asctime", "strftime", "mktime",
)  # fmt: skip
REAL_CLOCKS: Mapping[str, Any] = MappingProxyType(
    {name: getattr(time, name) for name in _CLOCKS if hasattr(time, name)}
)
"""The functions of ``time`` as they were when agentloom was imported, before anybody had put others there."""


def guard_for_recording(policy: GuardPolicy) -> Guard:
    """A guard that begins now, with fresh entropy. Puts the guard in place in this process."""
    start = _time_ns()
    if policy == "off":
        return Guard(start=start)
    from agentloom.runtime.guard_env import Snapshot
    from agentloom.runtime.guard_install import install

    install()
    return Guard(
        policy, _urandom(ENTROPY_BYTES), start=start, monotonic=_monotonic_ns(), environment=Snapshot()
    )


def begins(guard: Guard) -> None:
    """The run begins now: this is what its clocks show at virtual time 0."""
    guard.start = _time_ns()
    if guard.virtual:
        guard.monotonic = _monotonic_ns()


def guard_for_replay(
    policy: Tree,
    clock: Tree,
    env: Callable[[], Tree],
    variables: Callable[[], Mapping[str, Any]],
    unknown: Callable[[str, str], BaseException],
    *,
    goes_on: bool = False,
) -> Guard:
    """The guard under which a run was recorded, from what its trace says: ``policy``, the ``clock`` of the start entry,
    ``env``, and the ``variables`` that it read. ``unknown`` is told of a variable that was not read then (what, where).
    ``goes_on``: the run is resumed in this process.
    """
    chosen, entropy = policy_facts(policy)
    shown = cast("dict[str, Any]", clock) if isinstance(clock, dict) else {}
    if chosen == "off":
        return Guard(start=int(shown.get("start", 0))) if goes_on else OFF
    from agentloom.runtime.guard_dates import in_another_zone
    from agentloom.runtime.guard_env import Recorded, Resumed
    from agentloom.runtime.guard_install import install
    from agentloom.runtime.guard_values import install_zone_values
    from agentloom.runtime.guard_zone import elsewhere

    install()
    start, facts = int(shown.get("start", 0)), env()
    zone = elsewhere(facts.get("zone") if isinstance(facts, dict) else None, start / 1e9)
    if zone is not None:
        in_another_zone()
        install_zone_values()
    environment = (Resumed if goes_on else Recorded)(variables(), unknown)
    then, now = environment.told("os.getcwd()"), REAL_FOLDER()
    if isinstance(then, str) and then != now:
        from agentloom.runtime.guard_files import find_moved

        environment.moved = then, now
        find_moved()
    guard = Guard(
        chosen,
        entropy,
        start=start,
        monotonic=int(shown.get("monotonic", 0)),
        zone=zone,
        environment=environment,
    )
    draws = policy.get("draws") if isinstance(policy, dict) else None
    guard.draws = draws if isinstance(draws, str) else None
    return guard
