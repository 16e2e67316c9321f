"""Which store a location means."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.errors import NotSupported, StoreFailed
from agentloom.store import LocalStore, MemoryStore, open_store


def test_the_argument_then_the_variable_then_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path / "named"))
    roots = []
    for location in (tmp_path / "given", None):
        store = open_store(location)
        assert isinstance(store, LocalStore)
        roots.append(Path(store.root))
    monkeypatch.setenv("AGENTLOOM_STORE", "")
    store = open_store()
    assert isinstance(store, LocalStore)
    assert [*roots, Path(store.root)] == [tmp_path / "given", tmp_path / "named", tmp_path / ".agentloom"]
    assert list(tmp_path.iterdir()) == []  # opening makes nothing


def test_memory_and_places_that_are_no_folder() -> None:
    assert isinstance(open_store(":memory:"), MemoryStore)
    with pytest.raises(NotSupported, match="s3://bucket"):
        open_store("s3://bucket")


def test_durability_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM_DURABILITY", "power")
    store = open_store(tmp_path)
    assert isinstance(store, LocalStore)
    assert store.durability == "power"
    monkeypatch.setenv("AGENTLOOM_DURABILITY", "hope")
    with pytest.raises(StoreFailed, match="hope"):
        open_store(tmp_path)


def test_a_store_is_taken_as_it_is(tmp_path: Path) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path)):
        assert open_store(store) is store


def test_what_is_no_store_is_told_what_it_lacks() -> None:
    class Old:
        def create(self) -> None: ...
        def reopen(self) -> None: ...
        def read(self) -> None: ...
        def runs(self) -> None: ...
        def resolve(self) -> None: ...
        def add(self) -> None: ...
        def remove(self) -> None: ...

    with pytest.raises(TypeError, match="Old is no store: it lacks post, mail "):
        open_store(Old())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="methods of agentloom.store.Store, not builtins.int"):
        open_store(3)  # type: ignore[arg-type]
