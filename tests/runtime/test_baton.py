"""``parallel`` of sync agents: one strand at a time, errors, verdicts and Ctrl-C reach all of them, no deadlock."""

from __future__ import annotations

import contextvars
import os
import select
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentloom import Trace, agent, sync, tool
from agentloom.errors import Diverged, NotSupported, StoreFailed
from agentloom.runtime import baton as baton_module
from agentloom.runtime.baton import parallel
from agentloom.runtime.scope import entered, require
from agentloom.store import MemoryStore
from tests.runtime.fakes import WAIT, Bench, FailingStore, fails, in_time, kinds_of, recorded

BARRIER = threading.Barrier(3)


@tool(effect="read")
def find(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return number


@tool(effect="read")
def meet(number: int) -> int:
    """Three of these end only when all are under way: the calls of strands overlap."""
    BARRIER.wait(WAIT)
    return number


def calls(*numbers: int) -> list[Callable[[], int]]:
    return [lambda number=number: find(number) for number in numbers]  # type: ignore[misc]


def test_calls_of_strands_overlap_and_their_results_keep_their_order() -> None:
    @agent
    def three() -> list[int]:
        return sync.parallel(*(lambda n=n: meet(n) for n in range(3)))

    trace = in_time(lambda: recorded(three))
    assert isinstance(trace, Trace)
    assert trace.output == [0, 1, 2]
    assert kinds_of(trace)[1:4] == ["request"] * 3


def test_only_one_strand_runs_at_a_time() -> None:
    inside: list[int] = []

    @agent
    def counts() -> int:
        total = 0

        def branch() -> None:
            nonlocal total
            for _ in range(5):
                before = total
                inside.append(1)
                assert len(inside) == 1
                inside.pop()
                total = before + 1
                find(1)

        sync.parallel(*[branch] * 4)
        return total

    assert in_time(lambda: recorded(counts)).output == 20  # type: ignore[attr-defined]


def test_paths_are_structural_and_parallels_nest() -> None:
    @agent
    def nested() -> Any:
        inner = lambda: sync.parallel(*calls(1, 2))  # noqa: E731
        return sync.parallel(inner, lambda: find(3)), sync.parallel(*calls(4))

    trace: Any = in_time(lambda: recorded(nested))
    assert trace.output == ([[1, 2], 3], [4])
    paths = {call.request["args"]["number"]: call.id for call in trace.calls}
    root = "root/nested/parallel"
    assert paths == {
        1: f"{root}[0]/parallel[0]#1", 2: f"{root}[0]/parallel[1]#1", 3: f"{root}[1]#1", 4: f"{root}[2]#1",
    }  # fmt: skip


def test_all_run_to_their_end_and_the_first_error_in_argument_order_is_raised() -> None:
    done: list[int] = []

    @agent
    def some_fail() -> str:
        def late() -> None:
            find(1)
            find(2)
            done.append(1)

        try:
            sync.parallel(late, lambda: find(-1), lambda: find(-2))
        except ValueError as error:
            return str(error.args)
        return "?"

    trace: Any = in_time(lambda: recorded(some_fail))
    assert trace.output == "(-1,)"
    assert done == [1, 1]  # live and replayed


def test_an_exit_goes_before_an_error() -> None:
    @agent
    def leaves() -> None:
        def out() -> None:
            raise SystemExit(4)

        sync.parallel(lambda: find(-1), out)

    error, trace = fails(leaves)
    assert isinstance(error, SystemExit)
    assert trace.status == "failed"


@pytest.mark.parametrize("fail_at", range(2, 16))
def test_a_store_that_fails_in_one_branch_wakes_all_others(fail_at: int) -> None:
    store = FailingStore(fail_at)
    performed: list[int] = []

    @tool
    def writes(number: int) -> int:
        performed.append(number)
        return number

    @agent
    def many() -> str:
        def branch(number: int) -> None:
            try:
                writes(number)
                sync.parallel(lambda: writes(number + 10), lambda: writes(number + 20))
            except BaseException:  # noqa: BLE001 - what careless code does
                writes(number + 100)  # what careless code tries next

        try:
            sync.parallel(*(lambda n=n: branch(n) for n in range(3)))
        except BaseException:  # noqa: BLE001 - what careless agents do
            return "fine"
        return "fine"

    with pytest.raises(StoreFailed):
        in_time(lambda: many.run(store=store))
    trace = Trace.open("last", store)
    assert trace.status == "unfinished"
    assert not [number for number in performed if number >= 100]
    assert len(performed) <= len(trace.calls)


def test_a_divergence_in_one_branch_wakes_all_others() -> None:
    order = [1]

    @agent
    def drifts() -> list[object]:
        def careless(number: int) -> object:
            try:
                return find(number)
            except BaseException:  # noqa: BLE001 - what careless agents do
                return find(7)

        return sync.parallel(lambda: careless(order[0]), lambda: careless(2), lambda: careless(3))

    trace = drifts.run(store=MemoryStore())
    order[0] = 5
    report: Any = in_time(lambda: trace.replay(check=False))
    assert report.verdict == "diverged"
    assert "number" in str(report)


def test_a_verdict_of_the_source_is_kept_and_given_to_every_strand() -> None:
    bench = Bench()
    raised: list[type[BaseException]] = []

    def branch() -> None:
        try:
            find(1)
        except BaseException as error:
            raised.append(type(error))
            raise

    def poll(timer: int | None) -> None:
        raise Diverged("here")

    bench.source.poll = poll  # type: ignore[method-assign]

    def run() -> None:
        with entered(bench.session.root):
            parallel(branch, branch, branch)

    with pytest.raises(Diverged):
        in_time(run)
    assert raised == [Diverged] * 3
    assert isinstance(bench.engine.failure, Diverged)
    baton = bench.session.baton
    assert baton is not None
    baton.end()
    assert bench.session.baton is None


def test_ctrl_c_is_one_event_that_every_waiting_strand_gets() -> None:
    """The press comes while three calls are under way; two of them never end by themselves."""
    under_way = threading.Barrier(3)
    never = threading.Event()
    seen: list[str] = []

    @tool
    def hangs(number: int) -> None:
        if under_way.wait(WAIT) == 0:
            os.kill(os.getpid(), signal.SIGINT)
        never.wait(WAIT)

    @agent
    def interrupted() -> None:
        def branch(number: int) -> None:
            try:
                hangs(number)
            except KeyboardInterrupt:
                seen.append(find(number).__class__.__name__)  # clean-up may still make calls
                raise

        sync.parallel(*(lambda n=n: branch(n) for n in range(3)))

    store = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(store=store)
    never.set()
    assert seen == ["int"] * 3
    trace = Trace.open("last", store)
    assert trace.status == "cancelled"
    assert kinds_of(trace).count("cancel") == 1
    assert [call.status for call in trace.calls] == ["cancelled"] * 3 + ["ok"] * 3
    assert trace.replay(agent=interrupted).verdict == "identical"


class _Deaf:
    """An event that is waited for past the baton: by reading a pipe."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def set(self) -> None:
        os.write(self._write, b"x")

    def wait(self, seconds: float) -> None:
        select.select([self._read], [], [], seconds)


def test_a_second_ctrl_c_gives_the_run_up_and_writes_nothing_more() -> None:
    started, never = _Deaf(), _Deaf()

    @agent(guard="virtual")
    def stuck() -> None:
        def branch() -> None:
            sources.append(require("probe").session.source)
            started.set()
            never.wait(WAIT)  # the agent's own code, deaf to the first press
            find(1)

        sync.parallel(branch)

    def press() -> None:
        started.wait(WAIT)
        main = threading.main_thread().ident or 0
        signal.pthread_kill(main, signal.SIGINT)
        while not getattr(sources[0], "_arrived", None):  # the first press was taken
            never.wait(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    sources: list[object] = []
    threading.Thread(target=press, daemon=True).start()
    store = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        stuck.run(store=store)
    never.set()
    trace = Trace.open("last", store)
    assert trace.status == "unfinished"
    assert not [call for call in trace.calls if call.kind == "tool"]


def test_a_thread_of_ones_own_that_takes_the_runs_context_along_is_refused() -> None:
    """Under a guard it would be adopted."""

    @agent(guard="off")
    def smuggles() -> list[str]:
        said: list[str] = []

        def call(number: int) -> None:
            try:
                find(number)
            except NotSupported as error:
                said.append(str(error.hint))

        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, call, 1).result()

        def strand() -> None:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(contextvars.copy_context().run, call, 2).result()

        sync.parallel(strand)
        return said

    trace: Any = in_time(lambda: recorded(smuggles))
    assert len(trace.output) == 2
    assert all("parallel" in hint for hint in trace.output)
    assert trace.calls == []


def test_no_more_threads_is_an_error_of_the_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    @agent
    def crowded() -> Any:
        def start(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(baton_module, "_start_thread", start)
            try:
                sync.parallel(*calls(1, 2))
            except RuntimeError as error:
                return str(error)

    assert crowded.run(store=MemoryStore()).output == "can't start new thread"


def test_the_wrong_kind_of_agent_or_branch_is_refused_by_name() -> None:
    @agent
    async def awaits() -> Any:
        return sync.parallel(*calls(1))

    error, _ = fails(awaits)
    assert "await agentloom.parallel" in str(error)

    @agent
    def gives(branch: object) -> Any:
        return sync.parallel(*calls(1), branch)  # type: ignore[arg-type]

    error, trace = fails(gives, 5)
    assert "argument 2 is an int" in str(error)
    assert trace.calls == []


def test_without_branches_there_is_nothing_to_do() -> None:
    @agent
    def nothing() -> Any:
        return sync.parallel()

    assert recorded(nothing).output == []
