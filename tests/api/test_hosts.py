"""Host functions, async and sync: the same names, the same parameters, the same records."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import agentloom
from agentloom import agent, sync
from agentloom.api import hosts, hosts_sync
from agentloom.errors import NoActiveRun
from agentloom.store import MemoryStore

CALLS: dict[str, tuple[Any, ...]] = {
    "model": ("m", "hi"), "http": ("GET", "http://127.0.0.1:9"), "now": (), "random": (), "uuid": (), "env": ("HOME",),
    "sleep": (0,), "step": (len, "x"), "retrieve": (list, ()), "note": ("n",), "flag": ("f",),
}  # fmt: skip


def test_both_have_the_same_names_and_parameters() -> None:
    assert hosts.__all__ == hosts_sync.__all__ == sync.__all__
    for name in CALLS:
        here, there = inspect.signature(getattr(agentloom, name)), inspect.signature(getattr(sync, name))
        assert list(here.parameters) == list(there.parameters), name


@pytest.mark.parametrize("name", CALLS)
def test_outside_a_run_each_is_refused_by_name(name: str) -> None:
    with pytest.raises(NoActiveRun, match="was called outside a run"):
        getattr(sync, name)(*CALLS[name])


@agent
async def noting() -> None:
    await agentloom.note({"seen": [1, 2]})
    await agentloom.flag("odd")


@agent
def noting_sync() -> None:
    sync.note({"seen": [1, 2]})
    sync.flag("odd")


@pytest.mark.parametrize("which", [noting, noting_sync])
def test_notes_and_flags_are_entries(which: Any) -> None:
    trace = which.run(store=MemoryStore())
    marks = [
        (e["kind"], trace.journal.tree(e["val"]))
        for e in trace.journal.entries
        if e["kind"] in ("note", "flag")
    ]
    assert marks == [("note", {"seen": [1, 2]}), ("flag", "odd")]
    assert trace.replay().verdict == "identical"


@agent
async def side_by_side(fail: bool) -> list[Any]:
    async def branch(number: int) -> Any:
        try:
            await agentloom.sleep(0.001 * (3 - number))
            if fail and number == 2:
                raise ValueError(number)
            await agentloom.sleep(0.005)
        finally:
            await agentloom.note(f"end {number}")
        return number

    return await agentloom.parallel(*(branch(number) for number in range(3)))


def test_parallel_keeps_the_order_of_its_arguments() -> None:
    trace = side_by_side.run(False, store=MemoryStore())
    assert trace.output == [0, 1, 2]
    assert trace.calls[0].path.startswith("root/side_by_side/parallel[")
    assert trace.replay().verdict == "identical"


def test_the_first_error_cancels_the_others_and_waits_for_their_clean_up() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="2"):
        side_by_side.run(True, store=store)
    trace = agentloom.Trace.open("last", store)
    notes = [trace.journal.tree(e["val"]) for e in trace.journal.entries if e["kind"] == "note"]
    assert sorted(map(str, notes)) == ["end 0", "end 1", "end 2"]


@agent
def strands() -> list[Any]:
    return sync.parallel(lambda: sync.sleep(0), lambda: sync.now().year > 2000)


def test_parallel_in_a_sync_agent_takes_functions() -> None:
    trace = strands.run(store=MemoryStore())
    assert trace.output == [None, True]
    assert trace.replay().verdict == "identical"
