"""The home folder names a person, and is not written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentloom import agent
from agentloom.runtime.homes import below_home, from_home
from agentloom.store import MemoryStore


def test_there_and_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = str(tmp_path / "project" / "agent.py")
    assert below_home(path) == "~/project/agent.py"
    assert from_home(below_home(path)) == path
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    assert from_home("~/project/agent.py") == str(tmp_path / "other" / "project" / "agent.py")


@pytest.mark.parametrize("home", ["/", "/home/ada", ""])
def test_other_places_stay(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    for path in ("/srv/agent.py", "/home/adam/agent.py", "agent.py", "/home/ada"):
        assert below_home(path) == path
        assert from_home(path) == path
    assert from_home("~other/agent.py") == "~other/agent.py"


def test_a_home_behind_a_link(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert below_home(str(real / "agent.py")) == "~/agent.py"


def test_a_trace_says_where_its_agent_lies_without_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    monkeypatch.setenv("HOME", home)

    @agent
    def placed() -> None:
        pass

    data = placed.run(store=MemoryStore())._data
    assert b'"path":"~/runtime/test_homes.py"' in data
