"""Pools in runs, rule by rule: what is a helper of a library, what is left in a pool, how futures are hashed."""

from __future__ import annotations

import contextvars
import functools
import platform
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from agentloom.runtime import thread_pools
from agentloom.runtime.baton import Baton
from agentloom.runtime.scope import entered
from tests.runtime.fakes import Bench


def own() -> None: ...


@pytest.mark.parametrize(
    ("function", "helper"),
    [
        (platform.platform, True),
        (functools.partial(platform.platform), True),
        (functools.partial(contextvars.copy_context().run, platform.platform), True),
        (functools.partial(platform.platform, True), False),
        (functools.partial(platform.platform, aliased=True), False),
        (functools.partial(contextvars.copy_context().run, own), False),
        (functools.partial(functools.partial, own), False),
        (own, False),
        (len, False),
    ],
)
def test_a_librarys_function_that_is_given_nothing_is_a_helper(
    function: Callable[..., Any], helper: bool
) -> None:
    assert thread_pools._is_helper(function, ()) is helper
    assert not thread_pools._is_helper(function, (1,))


def test_an_executor_that_is_none_of_threads_is_answered_inline() -> None:
    bench = Bench()
    assert thread_pools.in_thread(bench.session, None, object(), own, ()) is None
    bench.engine.failure = LookupError()
    assert thread_pools.in_thread(bench.session, None, None, own, ()) is None


def test_futures_are_counted_for_the_run_and_hashed_by_their_number_in_it() -> None:
    outside: Future[Any] = Future()
    bench = Bench()
    bench.engine.take()
    with entered(bench.session.root):
        real: Future[Any] = Future()  # this run adopts no threads
        bench.session.adopts = True
        made: list[Future[Any]] = [Future() for _ in range(3)]
    assert [hash(one) for one in made] == [1, 2, 3]
    assert hash(outside) == object.__hash__(outside)
    assert hash(real) == object.__hash__(real)


def test_what_is_left_in_a_pool() -> None:
    pool = ThreadPoolExecutor(1)
    assert thread_pools.unfinished(pool) == []
    bench = Bench()
    bench.engine.take()
    bench.session.adopts = True
    with entered(bench.session.root):
        futures = [pool.submit(int, number) for number in range(3)]
        assert thread_pools.unfinished(pool) == futures
        assert [future.result() for future in futures] == [0, 1, 2]
        assert thread_pools.unfinished(pool) == []
        baton = bench.session.baton
        assert isinstance(baton, Baton)
        pool.shutdown()
        baton.end()
    assert thread_pools.unfinished(pool) == []
