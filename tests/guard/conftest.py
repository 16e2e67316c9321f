from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.agents import Program


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A folder with a program, and the working folder."""
    monkeypatch.chdir(tmp_path)
    return Program(tmp_path)


@pytest.fixture(scope="module")
def nothing_left() -> Iterator[None]:
    """What a refusal left open goes with the module whose tests look away, and is not told of in another one."""
    yield
    gc.collect()
