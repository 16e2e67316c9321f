"""The sync driver."""

from __future__ import annotations

import pytest

from agentloom.runtime.driver_sync import run_sync
from agentloom.runtime.scope import current
from tests.runtime.fakes import Bench


def test_the_agent_runs_in_the_root_scope_and_the_source_is_closed() -> None:
    bench = Bench()
    assert run_sync(bench.session, current) is bench.session.root
    assert current() is None
    assert bench.source.closed == 1
    assert bench.session.blocking


def test_the_source_is_closed_whatever_the_agent_raises() -> None:
    bench = Bench()
    with pytest.raises(SystemExit):
        run_sync(bench.session, lambda: (_ for _ in ()).throw(SystemExit(2)))
    assert bench.source.closed == 1
    assert current() is None
