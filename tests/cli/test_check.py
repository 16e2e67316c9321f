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


LEAK = """\
import os
from agentloom import agent, tool

HERE = os.path.relpath("/", os.curdir)

@tool
def search(query): return query

@agent
def find(query):
    words = {query, "one", "two", "three", "four"}
    return search(" ".join(words)) + HERE{comment}
"""


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    path = tmp_path / "leaky.py"
    path.write_text(LEAK.replace("{comment}", ""))
    return path


def test_a_double_run_of_a_run_that_is_recorded_now(cli: Call, leaky: Path) -> None:
    result = cli("check", "leaky.py:find", "--record", "--input", "x", "--worlds", "2", "--json")
    assert result.code == result.data["exit"] == 1
    assert [(one["check"], one["line"]) for one in result.data["findings"]] == [
        ("double-run", 10),
        ("double-run", 12),
        ("set-order", 12),
    ]
    double = result.data["double_run"]
    assert sorted(one["facets"] for one in double["differences"]) == [["hash seed"], ["working folder"]]
    by_seed = next(one for one in double["differences"] if one["facets"] == ["hash seed"])
    assert by_seed["report"]["schema"] == "agentloom/report/1"
    assert [one["line"] for one in by_seed["origins"]] == [12]
    assert (double["chosen"], len(double["worlds"])) == ("recorded now", 2)
    again = cli("check", "leaky.py:find", "last", "--worlds", "2", "--only", "double-run")
    assert again.code == 1
    assert "double run  " in again.out
    assert "differs with another hash seed" in again.out
    assert "    origin" not in again.out
    run = cli("check", "last", "--worlds", "2")
    assert run.code == 1
    assert run.out.endswith("warnings  in 1 run\n")


def test_what_a_comment_accepts_is_counted_and_listed(cli: Call, leaky: Path) -> None:
    leaky.write_text(LEAK.replace("{comment}", "  # agentloom: ok set-order the order is noise"))
    result = cli("check", "leaky.py:find")
    assert result.code == 0
    assert "leaky.py:12  accepted  set-order  the order is noise" in result.out
    assert result.out.endswith("nothing found, 1 accepted  in 1 file\n")
    leaky.write_text(LEAK.replace("{comment}", "  # agentloom: ok hash the order is noise"))
    assert [one["check"] for one in cli("check", "leaky.py", "--json").data["findings"]] == [
        "accepted",
        "set-order",
    ]


def test_the_code_is_another_than_when_it_was_recorded(cli: Call, leaky: Path) -> None:
    leaky.write_text(LEAK.replace("{comment}", "").replace("words)", "sorted(words))").replace(" + HERE", ""))
    assert cli("check", "leaky.py:find", "--record", "--input", "x", "--worlds", "2").code == 0
    leaky.write_text(leaky.read_text().replace('"four"', '"five"'))
    result = cli("check", "leaky.py:find", "--worlds", "2")
    assert result.code == 3
    assert "differs in every replay" in result.out
    assert "the run was not recorded with this code" in result.err


def test_a_program_that_is_found_by_the_working_folder(cli: Call, tmp_path: Path) -> None:
    text = (
        "from agentloom import agent\nTEXT = open('words.txt').read()\n@agent\ndef find(query): return TEXT\n"
    )
    (tmp_path / "agent.py").write_text(text)
    (tmp_path / "words.txt").write_text("words")
    result = cli("check", "agent.py:find", "--record", "--input", "x", "--worlds", "2")
    assert result.code == 1
    assert "agent.py cannot be imported: FileNotFoundError" in result.out
    assert "with another working folder" in result.out
    (tmp_path / "agent.py").write_text("raise SystemExit(2)")
    result = cli("check", "agent.py:find", "last")
    assert result.code == 1
    assert "cannot be imported" in result.err


def test_names_to_look_for(cli: Call, leaky: Path) -> None:
    assert cli("check", "leaky.py:find", "--skip", "set-order").code == 0
    assert cli("check", "leaky.py:find", "--only", "set-order,hash").code == 1
    result = cli("check", "leaky.py:find", "--only", "set-ordr")
    assert result.code == 2
    assert "there are set-order" in result.err


def test_strict_fails_for_notes(cli: Call, agent: Path) -> None:
    agent.write_text(AGENT.replace("gpt-4o", "house-model"))
    assert (cli("check", "agent.py").code, cli("check", "agent.py", "--strict").code) == (0, 1)


def test_why_there_is_no_double_run(cli: Call, leaky: Path) -> None:
    assert "the store holds no run of leaky.py:find; --record makes one" in cli("check", "leaky.py:find").err
    assert cli("check", ".", "--json").data["no_double_run"] == "a folder has no run of its own"
    assert cli("check", "leaky.py:find", "-q").err == ""


def test_contradictions_and_damage(cli: Call, leaky: Path, tmp_path: Path) -> None:
    assert cli("check", "leaky.py:find", "last", "--record").code == 2
    run = samples.Maker()
    run.call(0, "model", "gpt-4o", {"model": "gpt-4o"}, {"content": "a", "model": "gpt-4o-2024-11-20"})
    (tmp_path / "a.loom").write_bytes(run.end().replace(b"gpt-4o", b"gpt-5o", 1))
    assert cli("check", "leaky.py:find", "a.loom").code == 5
    assert cli("check", "a.loom", "last").code == 2
