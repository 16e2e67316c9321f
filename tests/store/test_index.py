"""The index trusts nothing: whatever is in its file, the answer is that of the trace files."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.store import LocalStore, RunRow
from agentloom.store import index as index_module
from agentloom.store.index import Index, Version
from agentloom.store.osfile import RealOs
from agentloom.testing.store_contract import Sample, fill


@pytest.fixture(autouse=True)
def _fresh_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of files that were only just written are kept too, so that these tests need not wait."""
    monkeypatch.setattr(index_module, "_SETTLED", -(10**18))


class Watching(RealOs):
    """Counts the trace files that are opened."""

    def __init__(self) -> None:
        self.opened = 0

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:  # type: ignore[override]
        self.opened += path.endswith(".loom")
        return os.open(path, flags, mode)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "store", system=Watching())
    for number in range(1, 6):
        sample = Sample(number, tags={"user": f"user{number}"})
        fill(store, sample, sample.whole())
    return store


def opened(store: LocalStore) -> int:
    """How many trace files are read by one listing."""
    watching = store._system
    assert isinstance(watching, Watching)
    before = watching.opened
    store.runs()
    return watching.opened - before


def test_each_file_is_read_once(store: LocalStore) -> None:
    rows = store.runs()
    assert opened(store) == 0
    assert store.runs() == rows
    fill(store, Sample(9), Sample(9).whole())
    assert opened(store) == 1


def test_a_changed_file_is_read_again(store: LocalStore) -> None:
    store.runs()
    writer = store.reopen(Sample(2).run)
    sample = Sample(2, tags={"user": "user2"})
    sample.whole()
    writer.append(sample.mark("flag", "look at this"))
    writer.close()
    assert {row.run: row.flags for row in store.runs()}[Sample(2).run] == 1
    assert opened(store) == 0


def test_a_file_replaced_by_one_of_equal_size_and_time_is_read_again(store: LocalStore) -> None:
    store.runs()
    path = Path(store.path(Sample(3).run))
    before = path.stat()
    data = path.read_bytes().replace(b'"agent":"support"', b'"agent":"SUPPORT"')
    path.unlink()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert {row.run: row.agent for row in store.runs()}[Sample(3).run] == "SUPPORT"


def test_what_was_just_written_is_not_trusted_yet(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two changes within one step of the kernel's clock leave the same times.
    monkeypatch.setattr(index_module, "_SETTLED", 10**18)
    store.runs()
    assert opened(store) == 5


def test_a_removed_run_leaves_no_tag_behind(store: LocalStore) -> None:
    index = Path(store.root) / "index.sqlite"
    store.runs()
    assert b"user=user4" in index.read_bytes()
    store.remove(Sample(4).run)
    assert b"user=user4" not in index.read_bytes()
    os.unlink(store.path(Sample(5).run))  # by hand
    assert len(store.runs()) == 3
    assert b"user=user5" not in index.read_bytes()
    assert stat.S_IMODE(index.stat().st_mode) == 0o600


def test_no_text_of_the_run_is_in_the_index(store: LocalStore) -> None:
    sample = Sample(7)
    fill(
        store,
        sample,
        sample.start(),
        *sample.call(value="private words"),
        sample.mark("note", "private note"),
    )
    store.runs()
    assert b"private" not in (Path(store.root) / "index.sqlite").read_bytes()


def test_a_deleted_index_is_made_again(store: LocalStore) -> None:
    rows = store.runs()
    (Path(store.root) / "index.sqlite").unlink()
    assert store.runs() == rows
    assert opened(store) == 0


@pytest.mark.parametrize(
    "content", [b"", b"not a database", b"SQLite format 3\0" + bytes(5000), bytes(100_000), b"x" * 4096]
)
def test_a_file_that_is_no_index_is_replaced(store: LocalStore, content: bytes) -> None:
    rows = store.runs()
    (Path(store.root) / "index.sqlite").write_bytes(content)
    assert store.runs() == rows
    assert store.runs() == rows
    assert opened(store) == 0


def test_an_index_of_another_schema_is_replaced(store: LocalStore) -> None:
    path = Path(store.root) / "index.sqlite"
    rows = store.runs()
    for statements in (
        ["DROP TABLE run", "CREATE TABLE run (name TEXT)"],
        ["PRAGMA user_version = 99"],
        ["DROP TABLE run", "CREATE VIEW run AS SELECT 1"],
        ["ALTER TABLE run ADD COLUMN more TEXT"],
    ):
        db = sqlite3.connect(path)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()
        assert store.runs() == rows, statements
        fill(store, Sample(1000), Sample(1000).whole())
        assert len(store.runs()) == 6, statements
        store.remove(Sample(1000).run)
    assert store.runs() == rows


def test_a_row_that_was_tampered_with_does_not_count(store: LocalStore) -> None:
    rows = store.runs()
    db = sqlite3.connect(Path(store.root) / "index.sqlite")
    for change in (
        "body = replace(CAST(body AS TEXT), 'completed', 'cancelled')",
        "body = NULL",
        "size = 'many'",
        "sum = sum + 1",
        "body = x'FF'",
    ):
        db.execute(f"UPDATE run SET {change}")
        db.commit()
        assert store.runs() == rows, change
        assert opened(store) == 0, change
    db.close()


def test_no_flipped_byte_changes_an_answer(store: LocalStore) -> None:
    path = Path(store.root) / "index.sqlite"
    rows = store.runs()
    whole = path.read_bytes()
    seed = 7
    print(f"seed {seed}")
    chance = random.Random(seed)
    used = [at for at, byte in enumerate(whole) if byte]
    for at in [*range(100), *chance.sample(used, 300)]:
        broken = bytearray(whole)
        broken[at] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        assert store.runs() == rows, at
    for length in range(0, len(whole), 509):
        path.write_bytes(whole[:length])
        assert store.runs() == rows, length


def test_an_index_that_cannot_be_a_file_is_gone_without(store: LocalStore) -> None:
    path = Path(store.root) / "index.sqlite"
    rows = store.runs()
    path.unlink()
    path.mkdir()
    assert store.runs() == rows
    assert path.is_dir()


def test_a_locked_index_is_gone_without(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_BUSY", 0.01)
    rows = store.runs()
    db = sqlite3.connect(Path(store.root) / "index.sqlite", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    assert store.runs() == rows
    fill(store, Sample(8), Sample(8).whole())
    assert len(store.runs()) == 6
    db.execute("ROLLBACK")
    db.close()
    assert len(store.runs()) == 6


LISTER = """
import contextlib
import sys
from agentloom.store import LocalStore, index
index._SETTLED = -(10**18)
store = LocalStore(sys.argv[1])
for _ in range(15):
    runs = store.runs()
    assert len(runs) == 5, runs
    if sys.argv[2] == "breaks":
        with contextlib.suppress(FileNotFoundError):  # another process is just making it anew
            with open(store.root + "/index.sqlite", "r+b") as file:
                file.write(b"SQLite format 3 no more" * 9)
"""


def test_several_processes_list_while_one_breaks_the_index(store: LocalStore) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", LISTER, store.root, how], stderr=subprocess.PIPE, text=True)
        for how in ("breaks", "lists", "lists")
    ]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err


def test_the_index_alone(tmp_path: Path) -> None:
    index = Index(str(tmp_path / "index.sqlite"))
    version = Version(10, 20, 30, 40)
    row = RunRow("r", "completed", tags=("a=b",), calls={"tool": 1}, size=10)
    assert index.get({"r.loom": version}) == {}
    index.keep_only(set())
    index.forget(["r.loom"])
    index.put([])
    assert not (tmp_path / "index.sqlite").exists()
    index.put([("r.loom", version, 50, row)])
    assert index.get({"r.loom": version, "other.loom": version}) == {"r.loom": row}
    for other in (
        Version(11, 20, 30, 40),
        Version(10, 21, 30, 40),
        Version(10, 20, 31, 40),
        Version(10, 20, 30, 41),
    ):
        assert index.get({"r.loom": other}) == {}
    index.keep_only({"r.loom"})
    assert index.get({"r.loom": version}) == {"r.loom": row}
    index.forget(["r.loom"])
    assert index.get({"r.loom": version}) == {}
