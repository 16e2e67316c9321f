from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.agents import Program


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A folder with a program, and the working folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path)
