"""What a run was made from: sources, repository, packages, interpreter."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.identity import code_identity, environment, own_modules, source_of


def load(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_agents_own_modules_are_kept_with_their_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "identity_probe.py").write_text("def agent(x):\n    return x\n")
    (tmp_path / "identity_helper.py").write_text("LIMIT = 1\n")
    module = load(tmp_path / "identity_probe.py", "identity_probe", monkeypatch)
    load(tmp_path / "identity_helper.py", "identity_helper", monkeypatch)
    made = AgentFunction.of(module.agent)
    found = own_modules(str(tmp_path), "identity_probe", made.file)
    assert set(found) == {"identity_probe", "identity_helper"}
    text = "LIMIT = 1\n"
    assert found["identity_helper"] == {
        "file": "identity_helper.py", "digest": hashlib.sha256(text.encode()).hexdigest(), "source": text,
    }  # fmt: skip


def test_a_module_whose_file_is_gone_or_in_an_archive_does_not_stop_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "identity_kept.py").write_text("def agent(x):\n    return x\n")
    (tmp_path / "identity_gone.py").write_text("")
    module = load(tmp_path / "identity_kept.py", "identity_kept", monkeypatch)
    load(tmp_path / "identity_gone.py", "identity_gone", monkeypatch)
    (tmp_path / "identity_gone.py").unlink()
    zipped = ModuleType("identity_zipped")
    zipped.__file__ = str(tmp_path / "identity_kept.py" / "inside.py")
    monkeypatch.setitem(sys.modules, "identity_zipped", zipped)
    found = own_modules(str(tmp_path), "identity_kept", AgentFunction.of(module.agent).file)
    assert set(found) == {"identity_kept"}


def test_installed_packages_below_the_root_are_not_the_agents_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / ".local" / "lib" / "site-packages"
    site.mkdir(parents=True)
    (site / "identity_library.py").write_text("")
    (tmp_path / "identity_home.py").write_text("def agent(x):\n    return x\n")
    load(site / "identity_library.py", "identity_library", monkeypatch)
    module = load(tmp_path / "identity_home.py", "identity_home", monkeypatch)
    assert set(own_modules(str(tmp_path), "identity_home", AgentFunction.of(module.agent).file)) == {
        "identity_home"
    }


def test_no_folder_of_the_machine_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "identity_paths.py").write_text("def agent(x):\n    return x\n")
    module = load(tmp_path / "identity_paths.py", "identity_paths", monkeypatch)
    facts = {**code_identity(AgentFunction.of(module.agent)), **environment()}
    entry = facts["entry"]
    assert isinstance(entry, dict)
    assert entry.pop("path") == str(
        tmp_path / "identity_paths.py"
    )  # the one place: where a replay looks for it
    assert str(tmp_path) not in json.dumps(facts)
    assert str(Path.home()) not in json.dumps({**facts, "packages": None})
    assert facts["vcs"] is None  # outside of a repository
    assert entry["file"] == "identity_paths.py"


def test_packages_and_interpreter_are_named() -> None:
    def agent() -> None: ...

    facts = code_identity(AgentFunction.of(agent))
    packages = facts["packages"]
    assert isinstance(packages, list)
    assert any(str(name).startswith("click==") for name in packages)
    assert environment()["python"] == ".".join(map(str, sys.version_info[:3]))


def test_only_variables_that_were_asked_for_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("REGION", "eu")
    assert environment()["variables"] == {}
    monkeypatch.setenv("AGENTLOOM_RECORD_ENV", "REGION,ABSENT")
    assert environment()["variables"] == {"REGION": "eu"}


def test_the_repository_and_its_uncommitted_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*args: str) -> str:
        base = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        return subprocess.run([*base, *args], check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    path = tmp_path / "identity_repo.py"
    path.write_text("def agent(x):\n    return x\n")
    git("add", ".")
    git("commit", "-qm", "one")
    path.write_text("def agent(x):\n    return x + 1\n")
    module = load(path, "identity_repo", monkeypatch)
    vcs = code_identity(AgentFunction.of(module.agent))["vcs"]
    assert isinstance(vcs, dict)
    assert vcs["commit"] == git("rev-parse", "HEAD")
    assert isinstance(vcs["dirty"], str)


def test_a_source_in_another_encoding_keeps_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    facts = source_of(str(path), str(tmp_path))
    assert facts["source"] is None
    assert facts["digest"] == hashlib.sha256(path.read_bytes()).hexdigest()
