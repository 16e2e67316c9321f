"""What is left alone knows of itself: in its own code, in threads that it starts, and no longer than it lasts."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from agentloom.errors import NoActiveRun, NotSupported
from agentloom.runtime.left_out import OFF, left_out, left_out_here, refuse_run, taking_part
from agentloom.runtime.scope import run_outside


def in_thread(work: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_one_in_another_is_a_part_of_it() -> None:
    assert left_out_here() is None
    with left_out(OFF) as outer:
        assert left_out_here() is outer
        with left_out() as inner:
            assert inner is outer
        assert [outer.over] == [False]
        assert taking_part("now") is None
    assert outer.over
    assert left_out_here() is None
    with pytest.raises(NoActiveRun, match=r"now\(\)"):
        taking_part("now")


def test_a_context_that_outlives_it_is_on_its_own() -> None:
    with left_out():
        context = contextvars.copy_context()
        assert context.run(left_out_here) is not None
    assert context.run(left_out_here) is None


def test_threads_of_sync_code_belong_to_it_and_no_others() -> None:
    with left_out() as here:
        assert in_thread(left_out_here) is here
        assert (
            in_thread(lambda: run_outside(left_out_here)) is None
        )  # the work of a host call, of somebody's run
        assert contextvars.Context().run(left_out_here) is None
    assert in_thread(left_out_here) is None

    async def main() -> Any:
        with left_out():
            return in_thread(left_out_here), await asyncio.to_thread(left_out_here)

    bare, carried = asyncio.run(main())
    assert bare is None  # as in a run on a stock loop
    assert carried is not None


def test_a_run_of_its_own_is_refused_in_it() -> None:
    refuse_run("a.run()")
    with left_out(OFF), pytest.raises(NotSupported, match=r"a\.run\(\) was called .*AGENTLOOM=off"):
        refuse_run("a.run()")
