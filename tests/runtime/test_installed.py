"""Packages in a folder on the path, and the program that lies beside them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from agentloom import agent
from agentloom.runtime import installed
from agentloom.runtime.installed import in_target, target_package
from agentloom.runtime.places import in_site, is_library
from agentloom.store import MemoryStore


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As ``pip install --target`` leaves it, with a program beside the packages."""
    folder = tmp_path / "deps"
    record = folder / "web_client-1.0.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    lines = [
        "web_client/__init__.py,sha256=x,3",
        '"web_client/odd,name.py",sha256=x,3',
        "single.py,sha256=x,3",
        "../../bin/web,sha256=x,3",
        "bin/web,sha256=x,3",
        "__pycache__/single.cpython-311.pyc,,",
        "web_client-1.0.dist-info/RECORD,,",
    ]
    record.write_text("\n".join(lines) + "\n", "utf-8")
    for name in ("web_client/__init__.py", "single.py", "agent.py", "own/__init__.py", "web_client_own.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("", "utf-8")
    monkeypatch.syspath_prepend(folder)
    return folder


def test_what_a_record_names_is_installed(target: Path) -> None:
    assert in_target(str(target / "web_client" / "__init__.py"))
    assert in_target(str(target / "single.py"))
    assert target_package(str(target / "web_client" / "below" / "a.py")) == "web_client"
    assert target_package(str(target / "single.py")) == "single"
    for name in ("agent.py", "own/__init__.py", "web_client_own.py", "bin/web"):
        assert not in_target(str(target / name))
        assert target_package(str(target / name)) == ""
    assert is_library(str(target / "web_client" / "a.py"))
    assert in_site(str(target / "single.py"))
    assert not is_library(str(target / "agent.py"))


def test_a_folder_that_leaves_the_path_is_none(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(target / "single.py")
    assert in_target(path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(target)])
    assert not in_target(path)


def test_what_is_no_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half-1.0.dist-info").mkdir()  # without a RECORD
    (tmp_path / "a.zip").write_bytes(b"")
    for entry in (tmp_path, tmp_path / "a.zip", tmp_path / "gone"):
        monkeypatch.syspath_prepend(entry)
    assert not in_target(str(tmp_path / "half" / "a.py"))
    assert installed.target_package("") == ""


def test_what_is_no_text_on_the_path_is_passed_over(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [target / "elsewhere", *sys.path])  # Python does so too
    assert in_target(str(target / "single.py"))


def test_a_working_folder_that_is_gone(tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.syspath_prepend("")
    assert in_target(str(target / "single.py"))


def test_the_working_folder_is_looked_into(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(target)
    monkeypatch.setattr(sys, "path", ["", *(one for one in sys.path if one != str(target))])
    assert in_target(str(target / "single.py"))


def test_a_thread_that_asks_meanwhile_finds_the_same(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, listdir, asked = str(target / "single.py"), os.listdir, list[bool]()

    def slowly(folder: str) -> list[str]:
        if not asked:
            asked.append(in_target(path))  # what is read here is asked about
            other = Thread(target=lambda: asked.append(in_target(path)))
            other.start()
            other.join()
        return listdir(folder)

    monkeypatch.setattr(installed, "_listdir", slowly)
    assert in_target(path)
    assert asked == [False, True]


def test_packages_that_a_package_carries() -> None:
    assert is_library("/srv/app/shop/_vendor/requests/api.py")
    assert not is_library("/srv/app/shop/vendor/orders.py")


def test_a_run_that_puts_a_folder_on_its_path(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(target)])
    monkeypatch.chdir(target.parent)

    @agent
    def adds() -> str:
        sys.path.insert(0, target.name)
        return str(importlib.import_module("single").__file__)

    trace = adds.run(store=MemoryStore())
    assert [entry["kind"] for entry in trace.journal.entries] == ["start", "end"]
    assert in_target(str(target / "single.py"))


PROGRAM = """
import agentloom, dep
from agentloom.runtime.passed import client_of
import sys, uuid

def agent() -> object:
    return dep.call()

with agentloom.record("run", store=agentloom.store.MemoryStore()) as run:
    run.output = agent()
trace = run.trace
modules = sorted(trace._payload(trace.journal.entries[0], "code")["modules"])
print(modules, [call.src for call in trace.calls])
"""


def test_a_run_whose_packages_lie_in_a_folder(tmp_path: Path) -> None:
    deps = tmp_path / "deps"
    (deps / "dep-1.dist-info").mkdir(parents=True)
    (deps / "dep-1.dist-info" / "RECORD").write_text("dep.py,,\ndep-1.dist-info/RECORD,,\n", "utf-8")
    (deps / "dep.py").write_text(
        "import agentloom\n\n@agentloom.tool\ndef look():\n    return 1\n\ndef call():\n    return look()\n",
        "utf-8",
    )
    program = tmp_path / "program.py"
    program.write_text("import agentloom.store\n" + PROGRAM, "utf-8")
    env = {**os.environ, "PYTHONPATH": str(deps)}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False, env=env
    )
    assert done.stdout == "['__main__'] ['program.py:8 agent']\n", done.stderr
