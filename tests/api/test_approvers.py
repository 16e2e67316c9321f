"""Names and roles of those who may answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.api.approvers import may_answer, roles_of
from agentloom.errors import TargetError
from agentloom.store import LocalStore, MemoryStore
from agentloom.store.in_front import InFront


def test_a_name_or_a_role_is_enough() -> None:
    assert may_answer([], None, [])
    assert may_answer(["ann"], "ann", [])
    assert may_answer(["boss", "finance"], "bob", ["finance"])
    assert not may_answer(["ann"], None, ["ann"])
    assert not may_answer(["ann"], "bob", ["sales"])


def test_roles_stand_in_the_store_or_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    assert roles_of("ann", store) == []
    (tmp_path / "people.toml").write_text('[roles]\nfinance = ["ann", "bob"]\nboss = ["ann"]\n')
    assert roles_of("ann", store) == roles_of("ann", InFront(store)) == ["finance", "boss"]
    assert roles_of("eve", store) == roles_of(None, store) == roles_of("ann", MemoryStore()) == []
    other = tmp_path / "other.toml"
    other.write_text('[roles]\nsales = ["ann"]\n')
    monkeypatch.setenv("AGENTLOOM_PEOPLE", str(other))
    assert roles_of("ann", store) == roles_of("ann", MemoryStore()) == ["sales"]


@pytest.mark.parametrize(
    "text", ["[roles", '[roles]\nfinance = "ann"\n', "roles = 3\n", "[roles]\nfinance = [1]\n"]
)
def test_a_file_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "people.toml").write_text(text)
    with pytest.raises(TargetError, match=r"people\.toml"):
        roles_of("ann", LocalStore(tmp_path))


def test_a_file_that_is_named_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM_PEOPLE", str(tmp_path / "none.toml"))
    with pytest.raises(TargetError, match="which is not there"):
        roles_of("ann", MemoryStore())
