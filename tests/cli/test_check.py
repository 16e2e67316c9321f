"""``check``: findings with their places, JSON, exit codes; of source and of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli import samples

Call = Callable[..., Any]
AGENT = """\
from agentloom import Workflow, model

raise SystemExit("a check runs nothing")
graph = Workflow()
graph.step("classify", model="gpt-4o", temperature=0)
graph.step("respond", model="claude-haiku-4-5-20251001")
"""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(AGENT)
    return path


def test_a_floating_name_is_a_warning_with_place_reason_and_remedy(cli: Call, agent: Path) -> None:
    result = cli("check", "agent.py")
    assert result.code == 1
    assert result.out.splitlines() == [
        "agent.py:5:30  warning  model-alias  gpt-4o is a floating name, in graph.step(model=...)",
        "  why   OpenAI moves an undated name from one snapshot to the next",
        "  next  name a dated snapshot: gpt-4o-YYYY-MM-DD",
        "1 warning  in 1 file",
    ]
    assert cli("check", "agent.py:graph").out == result.out


def test_nothing_found_is_success(cli: Call, agent: Path) -> None:
    agent.write_text(AGENT.replace("gpt-4o", "gpt-4o-2024-08-06"))
    result = cli("check", ".")
    assert (result.code, result.out) == (0, "nothing found  in 1 file\n")


def test_a_note_alone_is_success(cli: Call, agent: Path) -> None:
    agent.write_text(AGENT.replace("gpt-4o", "house-model"))
    result = cli("check", "agent.py")
    assert result.code == 0
    assert "note  model-alias  house-model is not known to be pinned" in result.out
    assert result.out.endswith("1 note  in 1 file\n")


def test_a_file_that_cannot_be_read_is_a_note(cli: Call, agent: Path) -> None:
    agent.write_text("import broken\n")
    (agent.parent / "broken.py").write_text("def f(:")
    result = cli("check", "agent.py")
    assert result.code == 0
    assert result.out.startswith("broken.py  note  unread  broken.py:1 is no Python that can be read")
    assert cli("check", "broken.py").code == 1


def test_json(cli: Call, agent: Path) -> None:
    result = cli("check", "agent.py", "--json")
    assert result.code == 1
    assert (result.data["warnings"], result.data["exit"], result.data["looked_at"]) == (1, 1, ["agent.py"])
    (found,) = result.data["findings"]
    assert (found["check"], found["file"], found["line"], found["column"]) == (
        "model-alias",
        "agent.py",
        5,
        30,
    )


def test_a_run_says_what_its_names_stood_for(cli: Call, tmp_path: Path) -> None:
    run = samples.Maker()
    run.call(0, "model", "gpt-4o", {"model": "gpt-4o"}, {"content": "a", "model": "gpt-4o-2024-11-20"})
    (tmp_path / "a.loom").write_bytes(run.end())
    result = cli("check", "a.loom")
    assert result.code == 1
    assert "gpt-4o was asked 1 times" not in result.out
    assert (
        "a.loom, call 1  warning  model-alias  gpt-4o was asked once; answered 1 by gpt-4o-2024-11-20"
        in result.out
    )
    assert "next  name gpt-4o-2024-11-20" in result.out
    assert result.out.endswith("1 warning  in 1 run\n")
    assert cli("import", "a.loom").code == 0
    assert cli("check", "last").code == 1


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("gone.py", "does not exist"),
        ("gone", "no run 'gone'"),
        ("gone.loom", "gone.loom"),
        ("a.b:c", "no module named a.b"),
    ],
)
def test_what_is_not_there_is_an_error(cli: Call, target: str, says: str) -> None:
    result = cli("check", target)
    assert result.code == 1
    assert says in result.err
    assert "next:" in result.err
