"""The files of a target, without running any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.cli.checks.sources import sources_of
from agentloom.errors import TargetError


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(target: str) -> list[str]:
    return [source.shown for source in sources_of(target)]


def test_a_file_comes_with_what_it_imports_from_beside_it(here: Path) -> None:
    write(
        here,
        agent="import os, helper\nfrom tools.search import find\nraise SystemExit",
        helper="import agent",
    )
    write(here, tools__search="from . import base\nfrom .base import x", tools__base="", other="")
    (here / "tools" / "__init__.py").write_text("")
    assert shown("agent.py")[0] == "agent.py"
    assert set(shown("agent.py")[1:]) == {
        "helper.py",
        "tools/search.py",
        "tools/__init__.py",
        "tools/base.py",
    }
    assert shown("agent.py:graph") == shown("agent.py")
    assert shown("tools.search:find")[0] == "tools/search.py"


def test_a_folder_is_read_whole_but_for_what_is_not_the_projects(here: Path) -> None:
    write(here, src__b="", src__a="", src__venv__lib="", src__node_modules__x="")
    (here / "src" / ".hidden").mkdir()
    (here / "src" / ".hidden" / "c.py").write_text("")
    assert shown("src") == ["src/a.py", "src/b.py"]


def test_another_file_that_cannot_be_read_is_told(here: Path) -> None:
    write(here, agent="import broken, __main__, sys", broken="def f(:")
    found = sources_of("agent.py")
    assert [(source.shown, bool(source.problem), source.tree.body) for source in found[1:]] == [
        ("broken.py", True, [])
    ]
    assert [source.problem for source in sources_of(".")] == ["", found[1].problem]
    assert "broken.py:1 is no Python" in found[1].problem


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("gone.py", "gone.py does not exist"),
        ("empty", "holds no Python file"),
        ("broken.py", "broken.py:1 is no Python that can be read"),
        ("nul.py", "is no Python that can be read"),
        ("gone.agent:graph", "no module named gone.agent"),
    ],
)
def test_what_cannot_be_read_is_an_error(here: Path, target: str, says: str) -> None:
    write(here, broken="def f(:", nul="a\0b")
    (here / "empty").mkdir()
    with pytest.raises(TargetError, match=says):
        sources_of(target)


@pytest.mark.parametrize(
    "text",
    [
        "print(" + " + ".join(["'a'"] * 1_200) + ")\n",
        "print(" + " + ".join(["'a'"] * 20_000) + ")\n",
        "x = 1\nif x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(1, 1_500)),
        "print(" + "-" * 20_000 + "1)\n",
    ],
    ids=["sum", "long sum", "elif", "minus"],
)
def test_what_is_nested_too_deep_is_said_and_the_rest_is_looked_at(here: Path, text: str) -> None:
    write(here, deep=text, other="x = 1\n")
    (alone,) = sources_of("deep.py")
    assert alone.problem == "deep.py is nested too deep to be followed"
    assert [bool(source.problem) for source in sources_of(str(here))] == [True, False]
