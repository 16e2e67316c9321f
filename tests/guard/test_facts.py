"""What a run asks of the process and the machine is recorded, and comes again where the answers are others."""

from __future__ import annotations

import copy
import os
import pickle
import platform
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace
from agentloom.runtime.guard_env import Recorded, Snapshot
from tests.guard.agents import Program


@pytest.fixture
def elsewhere(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another folder, with a file of the same name that says something else; and the program's own has one."""
    (program.folder / "data.txt").write_text("then")
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "data.txt").write_text("now")
    return folder


def facts(trace: Trace) -> dict[str, Any]:
    """The names and values of what the run was told."""
    found: dict[str, Any] = {}
    for entry in trace.journal.entries:
        blob = entry.get("vars")
        if isinstance(blob, str):
            tree = trace.journal.tree(blob)
            assert isinstance(tree, dict)
            found |= {name: value for name, value in tree.items() if name.startswith("=") and len(name) > 1}
    return found


def test_the_working_folder_is_that_of_the_recording(
    program: Program, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = program.agent("return [os.getcwd(), os.path.abspath('x'), os.path.relpath('/'), str(os.uname())]")
    trace = program.record(agent)
    assert trace.output[0] == os.getcwd()
    assert set(facts(trace)) == {"=os.getcwd()", "=os.uname()"}
    monkeypatch.chdir(elsewhere)
    assert program.replay(agent).verdict == "identical"


@pytest.mark.parametrize("guard", ["strict", "virtual"])
def test_files_below_the_recorded_folder_are_found_in_this_one(
    program: Program, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    """Declared, they are served. Else they are read as they are here, and an error names what was asked for."""
    body = """
    def read(name):
        path = os.path.abspath(name)
        try:
            with open(path) as file: return file.read()
        except OSError as error:
            return str(error)
    """
    asks = "here = os.getcwd(); data = os.path.abspath('data.txt')"
    asks += (
        "; return [read('data.txt'), read('none'), os.listdir(here).count('data.txt'), os.path.exists(data)]"
    )
    if guard == "strict":
        asks = f"with allow('file.read', reason='it is the input'):\n    {asks}"
    agent = program.agent(
        "\n".join([*(line[4:] for line in body.strip("\n").splitlines()), asks]), guard=guard
    )
    trace = program.record(agent)
    assert trace.output == [
        "then",
        f"[Errno 2] No such file or directory: '{os.path.abspath('none')}'",
        1,
        True,
    ]
    monkeypatch.chdir(elsewhere)
    if guard == "virtual":
        (elsewhere / "data.txt").write_text("then")
    report = program.replay(agent)
    assert report.verdict == "identical", report


def test_answers_that_change_in_a_run_are_kept_one_by_one(program: Program) -> None:
    (program.folder / "below").mkdir()
    agent = program.agent(
        "seen = [os.getcwd(), os.getcwd()]\nos.chdir('below')\nseen.append(os.getcwd())\nos.chdir('..')\n"
        "return seen + [os.getcwd(), os.getcwd()]",
        guard="virtual",
    )
    trace = program.record(agent)
    assert set(facts(trace)) == {"=os.getcwd()", "=os.getcwd() 3", "=os.getcwd() 4"}
    assert [name[len(str(program.folder)) :] for name in trace.output] == ["", "", "/below", "", ""]
    assert program.replay(agent).verdict == "identical"


def test_an_answer_may_be_an_error(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "try: return __import__('pwd').getpwnam('nobody at all')\nexcept KeyError as error: return str(error)"
    )
    agent = program.agent(body)
    trace = program.record(agent)
    assert "nobody at all" in trace.output
    (value,) = facts(trace).values()
    assert value["error"] == "KeyError"
    assert program.replay(agent).verdict == "identical"


def test_what_the_agent_does_to_an_answer_changes_no_other(program: Program) -> None:
    body = """
    import locale
    first, facts = os.getgroups(), locale.localeconv()
    first.append("mine")
    facts.clear()
    return [os.getgroups(), len(locale.localeconv()) > 5]
    """
    agent = program.agent(body)
    trace = program.record(agent)
    assert trace.output == [os.getgroups(), True]
    assert "mine" not in str(facts(trace))
    assert program.replay(agent).verdict == "identical"


def test_a_library_sees_the_process(
    program: Program, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = program.folder / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "placed.py").write_text("import os\ndef folder(): return os.getcwd()\n")
    monkeypatch.syspath_prepend(str(packages))
    agent = program.agent("import placed\nreturn placed.folder()")
    trace = program.record(agent)
    assert facts(trace) == {}
    monkeypatch.chdir(elsewhere)
    assert program.replay(agent).verdict == "diverged"


def test_a_trace_from_before_facts_asks_the_process() -> None:
    asked = Recorded({"=a()": {"is": 1}, "=a() 3": {"is": 2}}, AssertionError)
    assert [asked.fact("a()", lambda: {"is": 0})["is"] for _ in range(4)] == [1, 1, 2, 2]
    assert asked.fact("b()", lambda: {"is": 0}) == {"is": 0}
    kept = Snapshot()
    answers = iter([1, 1, 2, 2])
    for _ in range(4):
        kept.fact("a()", lambda: {"is": next(answers)})
    assert kept.pending == {"=a()": {"is": 1}, "=a() 3": {"is": 2}}


def test_the_command_line_of_a_run_is_its_own(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["program", "--then"])
    body = """
    sys.argv.append("more")
    first = sys.argv.pop(0)
    return [first, sys.argv[0], list(sys.argv), sys.argv == ["--then", "more"], len(sys.argv), "more" in sys.argv]
    """
    agent = program.agent(body)
    trace = program.record(agent)
    assert trace.output == ["program", "--then", ["--then", "more"], True, 2, True]
    assert sys.argv == ["program", "--then"], "outside it is the process's"
    assert isinstance(sys.argv, list)
    assert type(pickle.loads(pickle.dumps(sys.argv))) is list
    assert copy.copy(sys.argv) == ["program", "--then"]
    monkeypatch.setattr(sys, "argv", ["another"])
    assert program.replay(agent).verdict == "identical"
    seen: list[list[str]] = []
    thread = threading.Thread(target=lambda: seen.append([*sys.argv]))
    thread.start()
    thread.join()
    assert seen == [["another"]]


def test_functions_keep_their_names_and_can_be_pickled(program: Program) -> None:
    program.record(program.agent("return os.getcwd()"))
    for function in (os.getcwd, os.getpid, os.stat, platform.node):
        assert pickle.loads(pickle.dumps(function)) == function
    assert (os.getcwd.__name__, os.stat.__name__, platform.node.__name__) == ("getcwd", "stat", "node")
    assert os.stat in os.supports_dir_fd
    assert os.stat in os.supports_follow_symlinks
