"""Hooks that run when a module is imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agentloom.adapters.imports import when_imported


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_hook_runs_once_after_the_modules_code(folder: Path) -> None:
    (folder / "late_one.py").write_text("import sys\nvalue = 1\nloader = type(__loader__).__name__\n")
    seen: list[ModuleType] = []
    when_imported("late_one", seen.append)
    assert seen == []
    module = importlib.import_module("late_one")
    assert seen == [module]
    assert module.value == 1
    assert module.loader == "SourceFileLoader"
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"  # type: ignore[union-attr]
    importlib.import_module("late_one")
    assert len(seen) == 1
    del sys.modules["late_one"]


def test_a_module_that_is_there_is_handed_over_at_once() -> None:
    seen: list[ModuleType] = []
    when_imported("json", seen.append)
    assert seen == [sys.modules["json"]]


def test_submodules(folder: Path) -> None:
    (folder / "late_package").mkdir()
    (folder / "late_package" / "__init__.py").write_text("from late_package import part\n")
    (folder / "late_package" / "part.py").write_text("value = 2\n")
    seen: list[str] = []
    when_imported("late_package.part", lambda module: seen.append(module.__name__))
    importlib.import_module("late_package")
    assert seen == ["late_package.part"]


def test_a_module_that_does_not_exist_fails_as_ever() -> None:
    when_imported("no_such_module_here", lambda module: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_here")
