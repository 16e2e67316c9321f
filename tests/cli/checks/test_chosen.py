"""Which run a double run replays."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from agentloom import agent
from agentloom.cli.checks.chosen import Chosen, chosen_run, record_run
from agentloom.cli.options import Settings
from agentloom.errors import RunNotFound, TargetError
from agentloom.store import open_store

AGENT = """\
from agentloom import agent, tool

@tool
def search(query): return query

@agent
def one(query, more=None): return search(query)

@agent
def two(query): return search(query)
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.py").write_text(AGENT)
    return Settings(store=str(tmp_path / "store"), quiet=True)


def chosen(settings: Settings, target: str, run: str | None = None, *inputs: str) -> Chosen | None:
    with ExitStack() as stack:
        return chosen_run(settings, target, run, inputs, stack)


def recorded(settings: Settings, target: str, *inputs: str) -> str:
    with ExitStack() as stack:
        made = record_run(settings, target, inputs, stack)
    assert made.how == "recorded now"
    return made.recording.run


def test_the_newest_of_the_object_and_of_the_input(settings: Settings) -> None:
    assert chosen(settings, "made.py:one") is None
    first = recorded(settings, "made.py:one", "a")
    second = recorded(settings, "made.py:one", "b", "more=1")
    other = recorded(settings, "made.py:two", "c")
    found = chosen(settings, "made.py:one")
    assert found is not None
    assert (found.recording.run, found.how) == (second, "the newest run of it in the store")
    assert found.place.path == str(Path("made.py").resolve())
    with_input = chosen(settings, "made.py:one", None, "a")
    assert with_input is not None
    assert with_input.recording.run == first
    assert chosen(settings, "made.py:one", None, "b", "more=1") is not None
    assert chosen(settings, "made.py:one", None, "z") is None
    newest = chosen(settings, "made.py")
    assert newest is not None
    assert newest.recording.run == other
    assert chosen(settings, ".") is None
    named = chosen(settings, "made.py:one", first)
    assert named is not None
    assert named.how == "as named"


def test_another_file_of_that_name_is_another_target(settings: Settings, tmp_path: Path) -> None:
    recorded(settings, "made.py:one", "a")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "made.py").write_text(AGENT)
    assert chosen(settings, "sub/made.py:one") is None


def test_what_cannot_be_recorded_or_found(settings: Settings) -> None:
    with pytest.raises(TargetError, match="three"):
        recorded(settings, "made.py:three")
    with pytest.raises(RunNotFound):
        chosen(settings, "made.py:one", "nosuchrun")


def test_runs_of_this_process_are_found_by_their_file(settings: Settings) -> None:
    @agent
    def here() -> int:
        return 1

    here.run(store=open_store(settings.store))
    assert chosen(settings, "made.py:one") is None
