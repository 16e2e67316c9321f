"""Case 6: eight threads of fifty calls each, each owned by its run; three threads replay them; threads that a run
starts, and a thread without a run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentloom import Trace, agent, sync, tool
from agentloom.errors import LoomError, NoActiveRun
from agentloom.store import MemoryStore
from agentloom.testing import Says
from tests.cases.conftest import Scenario

_ran: list[str] = []


@tool(effect="read")
def look(who: str, number: int) -> str:
    _ran.append(threading.current_thread().name)
    return f"{who}:{number}"


def _branch(who: str) -> list[str]:
    return [look(who, number) for number in range(50)]


@agent
def eight() -> list[list[str]]:
    return sync.parallel(*(lambda who=f"b{n}": _branch(who) for n in range(8)))


@agent
def one(who: str) -> list[str]:
    return _branch(who)


def test_eight_branches_of_fifty_calls() -> None:
    _ran.clear()
    trace = eight.run(store=MemoryStore())
    assert len(trace.calls) == 400
    assert len(_ran) == 400
    assert trace.output == [[f"b{n}:{m}" for m in range(50)] for n in range(8)]
    for n in range(8):
        mine = [call for call in trace.calls if call.path.startswith(f"root/eight/parallel[{n}]")]
        assert [call.result for call in mine] == [f"b{n}:{m}" for m in range(50)]
    assert trace.replay().verdict == "identical"
    assert len(_ran) == 400


def test_eight_runs_in_eight_threads_own_their_calls() -> None:
    """Eight runs at once in one process and one store: four hundred calls, none in another's trace."""
    store = MemoryStore()
    with ThreadPoolExecutor(8) as pool:
        traces = list(pool.map(lambda n: one.run(f"r{n}", store=store), range(8)))
    assert sum(len(trace.calls) for trace in traces) == 400
    for n, trace in enumerate(traces):
        assert [call.result for call in trace.calls] == [f"r{n}:{m}" for m in range(50)]
        assert trace.verify().consistent
    _ran.clear()
    with ThreadPoolExecutor(3) as pool:
        verdicts = list(pool.map(lambda trace: trace.replay(check=False).verdict, traces))
    assert verdicts == ["identical"] * 8
    assert _ran == []


def _in_a_thread(work: Any) -> Any:
    """What ``work`` returned or raised in a thread that is started here."""
    out: list[Any] = []

    def body() -> None:
        try:
            out.append(work())
        except LoomError as error:
            out.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return out[0]


WORK: dict[str, Any] = {
    "tool": lambda: look("x", 1),
    "now": lambda: str(sync.now()),
    "step": lambda: str(sync.step(len, "abc")),
    "model": lambda: str(sync.model("openai:m", "hello")),
}


@agent
def careless(kind: str) -> str:
    return str(_in_a_thread(WORK[kind]))


@pytest.mark.parametrize("kind", ["tool", "now", "step"])
def test_a_call_in_a_thread_of_the_run_is_in_its_trace(kind: str) -> None:
    _ran.clear()
    trace: Trace = careless.run(kind, store=MemoryStore())
    assert [call.kind for call in trace.calls] == [kind]
    performed = len(_ran)
    assert trace.replay(check=False).verdict == "identical"
    assert len(_ran) == performed


@pytest.mark.parametrize("kind", ["now", "step", "model"])
def test_a_call_in_a_thread_without_a_run_is_an_error(kind: str) -> None:
    found = _in_a_thread(WORK[kind])
    assert isinstance(found, NoActiveRun)
    assert "agent" in str(found)


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from agentloom import agent, model, sync
def branch(who):
    return [sync.model("openai:m", f"{who} {n}").text for n in range(5)]
@agent
def main():
    return sync.parallel(*(lambda who=f"b{n}": branch(who) for n in range(4)))
"""


def test_model_calls_of_four_branches_through_the_command_line(scenario: Scenario) -> None:
    from agentloom.testing import FakeProvider

    path = scenario.write(THREADS)
    with FakeProvider(lambda seen: Says("re " + str(seen.body["messages"][-1]["content"]))) as provider:
        done = scenario.call("run", f"{path}:main", env=provider.env())
        assert provider.count == 20
    assert done.code == 0, done.all
    assert "20 calls" in done.err
    again = scenario.identical()
    assert "IDENTICAL  20/20 calls" in again.out
