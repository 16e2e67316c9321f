"""What the tests of seeded leaks share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No store or width of the machine; the current folder is a scratch folder."""
    for name in ("AGENTLOOM_STORE", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LC_ALL", "LANG", "CHECK_TONE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
