"""Who holds the baton: the strand of the running thread, and nobody outside of runs."""

from __future__ import annotations

import contextvars
import threading

from agentloom.runtime.baton import Baton
from agentloom.runtime.strands import STRANDS, WAITING, holder, let_others
from tests.runtime.fakes import Bench


def test_only_the_thread_that_holds_the_baton_is_its_holder() -> None:
    assert holder() is None
    let_others()  # outside of a run: nothing
    bench = Bench()
    bench.engine.take()
    baton = Baton(bench.session)
    seen: list[object] = []
    try:
        assert holder() is baton.main
        with baton.aside():
            assert holder() is None
            thread = threading.Thread(target=lambda: seen.append(holder()))
            thread.start()
            thread.join()
        let_others()  # nobody is ready
        assert holder() is baton.main
    finally:
        baton.end()
    assert (holder(), seen, WAITING) == (None, [None], {})
    assert threading.get_ident() not in STRANDS


def test_whoever_is_ready_goes_first() -> None:
    bench = Bench()
    bench.engine.take()
    baton = Baton(bench.session)
    order: list[str] = []
    strands = [
        baton.start(contextvars.Context(), lambda name=name: order.append(name), name)  # type: ignore[misc]
        for name in ("one", "two")
    ]
    order.append("own")
    let_others()
    order.append("own")
    baton.end()
    assert order == ["own", "one", "two", "own"]
    assert all(strand.done for strand in strands)
