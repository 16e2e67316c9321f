"""``agentloom.sync`` has the host functions of ``agentloom``, and only those (more in tests/api/test_hosts.py)."""

from __future__ import annotations

import inspect

import agentloom
from agentloom import sync
from agentloom.api import hosts_sync, people_sync


def test_the_names_are_those_of_the_async_ones() -> None:
    assert set(sync.__all__) < set(agentloom.__all__)
    for name in sync.__all__:
        home = people_sync if name in people_sync.__all__ else hosts_sync
        assert getattr(sync, name) is getattr(home, name)


def test_none_of_them_has_to_be_awaited() -> None:
    assert not [name for name in sync.__all__ if inspect.iscoroutinefunction(getattr(sync, name))]
