"""Case 8: a result with a database session at ``a[2].db`` is refused when recorded, with path, type and remedy."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agentloom import LoomError, Trace, agent, sync, tool
from agentloom.errors import ValueRefused
from agentloom.store import LocalStore
from tests.cases.conftest import Scenario

HOST = "very-secret" + "-host"  # not as one word: a trace holds the source too
ADDRESS = "object " + "at 0x"


class Session:
    """As an ORM's session: its repr names what nobody should read on a disk."""

    def __repr__(self) -> str:
        return f"<Session of {HOST}>"


def reads_nothing() -> None:
    """A function is no value that can be kept."""


@tool(effect="read")
def rows(kind: str) -> Any:
    makers: Any = {
        "session": Session,
        "cursor": lambda: sqlite3.connect(":memory:"),
        "function": lambda: reads_nothing,
    }
    held = makers[kind]()
    return {"a": [1, 2, {"db": held}]}


@agent
def reads(kind: str) -> Any:
    return rows(kind)


@agent
def recovers(kind: str) -> Any:
    try:
        rows(kind)
    except ValueRefused as refused:
        return [refused.path, refused.type_name, str(refused)]
    return None


@pytest.mark.parametrize(
    ("kind", "type_name"),
    [("session", "Session"), ("cursor", "sqlite3.Connection"), ("function", "function")],
)
def test_a_session_in_a_result_is_refused_when_recorded(tmp_path: Path, kind: str, type_name: str) -> None:
    store = LocalStore(tmp_path)
    with pytest.raises(ValueRefused) as caught:
        reads.run(kind, store=store)
    assert caught.value.path.endswith("a[2].db")
    assert type_name in caught.value.type_name
    told = str(caught.value)
    assert "a[2].db" in told
    assert caught.value.hint
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert HOST.encode() not in file.read_bytes()
    trace = Trace.open(store=store)
    assert trace.status == "failed"
    assert ADDRESS not in repr([trace.calls[0].error, trace.error])


def test_the_refusal_is_the_calls_outcome_and_replays(tmp_path: Path) -> None:
    trace = recovers.run("session", store=LocalStore(tmp_path))
    assert trace.output[0].endswith("a[2].db")
    assert trace.calls[0].status == "error"
    assert trace.replay().verdict == "identical"


def test_arguments_outputs_and_inputs_alike(tmp_path: Path) -> None:
    @tool
    def takes(thing: Any) -> int:
        return 1

    @agent
    def asks() -> Any:
        return takes({"x": [Session()]})

    @agent
    def gives() -> Any:
        return {"out": (Session(),)}

    for made, path, args in (
        (asks, "args.thing.x[0]", ()),
        (gives, "out[0]", ()),
        (reads, "args[0]", (Session(),)),
    ):
        with pytest.raises(ValueRefused) as caught:
            made.run(*args, store=LocalStore(tmp_path))
        assert path in caught.value.path, caught.value.path
        assert "Session" in caught.value.type_name
    assert all(HOST.encode() not in file.read_bytes() for file in tmp_path.rglob("*.loom*"))


def test_through_the_command_line(scenario: Scenario) -> None:
    path = scenario.write(
        """
        from agentloom import agent, tool
        class Db: pass
        @tool
        def rows(): return {"a": [1, 2, {"db": Db()}]}
        @agent
        def main(): return rows()
        """
    )
    done = scenario.call("run", f"{path}:main")
    assert done.code == 1
    assert "a[2].db" in done.err
    assert "Db" in done.err
    again = scenario.replay()
    assert again.code == 0, again.all


def test_what_memory_and_steps_are_given(tmp_path: Path) -> None:
    @agent
    def keeps() -> Any:
        found = []
        for work in (
            lambda: sync.step(Session),
            lambda: sync.memory.put("k", Session()),
            lambda: sync.note(Session()),
        ):
            with contextlib.suppress(LoomError):
                work()
                found.append(work)
        return len(found)

    assert keeps.run(store=LocalStore(tmp_path)).output == 0
