"""A run that was cut off before the machine was started is resumed with a warning where entries were not synced."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from agentloom import agent, resume, tool
from agentloom.replay import resuming
from agentloom.store import LocalStore


@tool(effect="read")
def look(number: int) -> int:
    return number


@agent
def looks() -> int:
    return look(1) + look(2)


def cut_off(folder: Path, durability: Any) -> LocalStore:
    """A store with a run that ends in its second call."""
    store = LocalStore(folder / "store", durability=durability)
    run = looks.run(store=store).run_id
    lines = store.read(run).splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if b'"kind":"request"' in line)
    Path(store.path(run)).write_bytes(b"".join(lines[: last + 1]))
    return store


@pytest.mark.parametrize(
    ("durability", "started", "warned"),
    [
        ("process", "since", True),
        ("process", "before", False),
        ("power", "since", False),
        ("process", None, False),
    ],
)
def test_who_resumes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Any, started: str | None, warned: bool
) -> None:
    store = cut_off(tmp_path, durability)
    at = None if started is None else time.time_ns() + (10**9 if started == "since" else -(10**12))
    monkeypatch.setattr(resuming, "_machine_started", lambda: at)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert resume("last", looks, store=store).output == 3
    assert [str(one.message) for one in told if "power cut" in str(one.message)] != [] or not warned
    assert bool(told) == warned


def test_the_machine_was_started_in_the_past() -> None:
    started = resuming._machine_started()
    assert started is None or 0 < started < time.time_ns()


def test_the_trace_says_what_its_entries_outlive(tmp_path: Path) -> None:
    for durability in ("process", "power"):
        store = LocalStore(tmp_path / durability, durability=durability)
        journal = looks.run(store=store).journal
        policy: Any = journal.tree(str(journal.entries[0]["policy"]))
        assert policy["durability"] == durability
