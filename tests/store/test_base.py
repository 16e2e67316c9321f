"""Names that are safe as files, and the facts of a row."""

from __future__ import annotations

import pytest

from agentloom.errors import StoreError
from agentloom.store import LocalStore, MemoryStore, RunRow, Store
from agentloom.store.base import check_run_name


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "a\n", "a\0", "x" * 129, "a b", "-x", "ä"])
def test_unsafe_names(name: str) -> None:
    with pytest.raises(StoreError, match="run id"):
        check_run_name(name)


def test_safe_names() -> None:
    assert check_run_name("01hf4q5k8r0000000000000000") == "01hf4q5k8r0000000000000000"


def test_total() -> None:
    assert RunRow("r", "completed").total == 0
    assert RunRow("r", "completed", calls={"model": 2, "tool": 3}).total == 5


def test_both_stores_are_stores() -> None:
    assert isinstance(MemoryStore(), Store)
    assert isinstance(LocalStore("nowhere"), Store)
