"""The local store: the contract, its layout on the disk, and what may lie about in its folder."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentloom.errors import StoreFailed
from agentloom.store import LocalStore, Query, Store, write_file
from agentloom.store import scan as scan_module
from agentloom.store.osfile import RealOs
from agentloom.testing.store_contract import Sample, StoreContract, fill


class TestLocalStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_store(self) -> Store:
        return LocalStore(self.folder / "store")


class TestLocalStoreWithPower(TestLocalStore):
    def make_store(self) -> Store:
        return LocalStore(self.folder / "store", durability="power")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_may_read(store: LocalStore) -> None:
    root = Path(store.root)
    old = os.umask(0)
    try:
        writer = store.create(Sample().run)
        writer.append(Sample().start())
        store.add(Sample(2).whole())
        store.runs()
        assert {mode(path) for path in (root, root / "runs", root / "leases")} == {0o700}
        files = [path for path in root.rglob("*") if path.is_file()]
        assert len(files) >= 4
        assert {mode(path) for path in files} == {0o600}
        writer.close()
    finally:
        os.umask(old)


def test_the_folder_hides_itself_from_git(store: LocalStore) -> None:
    fill(store, Sample(), Sample().whole())
    assert (Path(store.root) / ".gitignore").read_text() == "*\n"


def test_a_folder_with_other_things_in_it_keeps_its_own_gitignore(tmp_path: Path) -> None:
    (tmp_path / "precious.py").write_text("x = 1\n")
    store = LocalStore(tmp_path)
    fill(store, Sample(), Sample().whole())
    assert not (tmp_path / ".gitignore").exists()
    assert (tmp_path / "runs" / ".gitignore").read_text() == "*\n"


def test_missing_parents_are_made(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "a" / "b" / "c")
    fill(store, Sample(), Sample().whole())
    assert len(LocalStore(tmp_path / "a" / "b" / "c").runs()) == 1


def test_the_file_is_named_after_the_run_and_holds_the_trace_alone(store: LocalStore) -> None:
    data = fill(store, Sample(), Sample().whole())
    path = Path(store.path(Sample().run))
    assert path == Path(store.root) / "runs" / f"{Sample().run}.loom"
    assert path.read_bytes() == data
    assert list((Path(store.root) / "leases").iterdir()) == []


def test_a_half_line_is_not_read(store: LocalStore) -> None:
    sample = Sample()
    kept, last = sample.start() + b"".join(sample.call()), sample.end()
    fill(store, sample, kept)
    with open(store.path(sample.run), "ab") as file:
        file.write(last[:-5])
    # Whole lines only: the payload of the entry that is missing, but nothing of the entry.
    assert store.read(sample.run) == kept + last[: last.index(b"\n") + 1]
    assert store.runs()[0].status == "crashed"
    writer = store.reopen(sample.run)
    assert writer.cut == len(last) - 5
    writer.append(last)
    writer.close()
    assert store.runs()[0].status == "completed"


@pytest.mark.parametrize("cut", ["newline", "entry", "payload"])
def test_every_torn_end_is_cut_back_to_the_last_entry(store: LocalStore, cut: str) -> None:
    sample = Sample()
    kept = sample.start() + b"".join(sample.call())
    last = sample.end()
    length = {"newline": len(last) - 1, "entry": last.index(b"\n") + 3, "payload": 40}[cut]
    fill(store, sample, kept)
    with open(store.path(sample.run), "ab") as file:
        file.write(last[:length])
    writer = store.reopen(sample.run)
    assert writer.cut == length
    writer.append(last)
    writer.close()
    assert store.read(sample.run) == kept + last


def test_a_run_that_stopped_before_its_first_entry(store: LocalStore) -> None:
    fill(store, Sample(2), Sample(2).whole())
    path = Path(store.root) / "runs" / f"{Sample(1).run}.loom"
    for content in (b"", Sample(1).start()[:50]):
        path.write_bytes(content)
        row = next(row for row in store.runs() if row.run == Sample(1).run)
        assert row.status == "crashed"
        assert row.problem
        with pytest.raises(StoreFailed, match="before its first entry"):
            store.reopen(Sample(1).run)
    store.remove(Sample(1).run)
    assert len(store.runs()) == 1


def test_the_start_entry_without_its_payloads_is_refused(store: LocalStore) -> None:
    start = Sample().start()
    fill(store, Sample(), start[: start.index(b"\n") + 1])
    with pytest.raises(StoreFailed, match="stopped before its first entry") as caught:
        store.reopen(Sample().run)
    assert caught.value.hint == "remove it and run the agent again"


# -- compressed traces in the folder


def test_a_compressed_trace_is_read_and_listed(store: LocalStore, tmp_path: Path) -> None:
    sample = Sample(tags={"user": "ann"})
    data = fill(store, sample, sample.start(), *sample.call("tool", "refund"), sample.end())
    path = Path(store.path(sample.run))
    row = store.runs()[0]
    write_file(path.with_suffix(".loom.zst"), data)
    path.unlink()
    assert store.read(sample.run) == data
    assert store.runs() == [row]
    assert store.resolve("ann") == sample.run
    assert [found.run for found in store.runs(Query(text="FOUND", tool="refund"))] == [sample.run]
    assert store.add(data) == sample.run
    with pytest.raises(StoreFailed, match="compressed"):
        store.reopen(sample.run)
    store.remove(sample.run)
    assert store.runs() == []


def test_a_damaged_compressed_trace_is_listed(store: LocalStore) -> None:
    fill(store, Sample(2), Sample(2).whole())
    path = Path(store.root) / "runs" / f"{Sample(1).run}.loom.zst"
    write_file(path, Sample(1).whole())
    path.write_bytes(path.read_bytes()[:-3])
    assert [row.status for row in store.runs()] == ["completed", "damaged"]
    assert [row.run for row in store.runs(Query(text="found"))] == [Sample(2).run]


# -- what may lie about


def test_strange_files_are_listed_and_hide_nothing(store: LocalStore) -> None:
    good = Sample(5)
    data = fill(store, good, good.whole())
    runs = Path(store.root) / "runs"
    (runs / "notes.txt").write_text("hello")
    (runs / ".hidden.loom").write_bytes(b"x")
    (runs / "a folder.loom").mkdir()
    (runs / "binary.loom").write_bytes(bytes(range(256)) * 10)
    (runs / "json.loom").write_bytes(b'{"seq":0}\n')
    (runs / "list.loom").write_bytes(b"[1]\n{}\n")
    (runs / f"{Sample(6).run}.loom").write_bytes(data)  # a copy under another name
    (runs / f"{Sample(7).run}.loom").write_bytes(data.replace(b'"version":"1.0"', b'"version":"2.0"'))
    os.symlink(runs / "nowhere", runs / "gone.loom")
    rows = store.runs()
    assert [(row.run, row.status) for row in rows[:3]] == [
        (Sample(7).run, "damaged"),
        (Sample(6).run, "damaged"),
        (good.run, "completed"),
    ]
    assert "2.0" in str(rows[0].problem)
    assert good.run in str(rows[1].problem)
    others = {row.run: row.status for row in rows[3:]}
    assert others == dict.fromkeys(["a folder", "binary", "json", "list"], "damaged")
    assert rows == store.runs()


def test_a_store_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    store = LocalStore(tmp_path / "store")
    with pytest.raises(StoreFailed, match="not a folder"):
        store.runs()
    with pytest.raises(StoreFailed, match="not a folder"):
        store.read(Sample().run)
    with pytest.raises(StoreFailed, match="not a folder"):
        store.create(Sample().run)


def test_a_symbolic_link_is_not_written_through(store: LocalStore, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(Sample().start())
    fill(store, Sample(2), Sample(2).whole())
    os.symlink(target, Path(store.root) / "runs" / f"{Sample().run}.loom")
    with pytest.raises(StoreFailed, match="symbolic link"):
        store.reopen(Sample().run)
    with pytest.raises(StoreFailed):
        store.create(Sample().run)
    assert target.read_bytes() == Sample().start()


def test_old_temporary_files_are_swept(store: LocalStore) -> None:
    store.add(Sample(1).whole())
    runs = Path(store.root) / "runs"
    old, young = runs / ".x.aa.tmp", runs / ".y.bb.tmp"
    for path in (old, young):
        path.write_bytes(b"secret")
    os.utime(old, (time.time() - 7200,) * 2)
    store.add(Sample(2).whole())
    assert (old.exists(), young.exists()) == (False, True)


# -- large traces


class Counting(RealOs):
    def __init__(self) -> None:
        self.bytes = 0

    def read(self, fd: int, count: int) -> bytes:
        data = os.read(fd, count)
        self.bytes += len(data)
        return data


def large(store: LocalStore, sample: Sample, *, middle: list[bytes], calls: int = 8) -> int:
    parts = [sample.start()]
    for number in range(calls):
        parts += sample.call("tool", f"tool{number % 2}", size=100_000)
        if number == calls // 2:
            parts += middle
    return len(fill(store, sample, *parts, sample.end()))


def test_large_traces_are_listed_from_start_and_end(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "LARGE", 300_000)
    sample = Sample(1, tags={"user": "ann"}, conversation="talk")
    size = large(store, sample, middle=[])
    counting = Counting()
    store = LocalStore(store.root, system=counting)
    row = store.runs()[0]
    assert (row.status, row.partial, row.total, row.tools) == ("completed", True, 8, {})
    assert (row.tags, row.conversation, row.size, row.head) == (("user=ann",), "talk", size, sample.head)
    for ref in ("last", sample.run[:12], sample.run[-6:], "user=ann", "ann"):
        assert store.resolve(ref) == sample.run
    # Six listings, each of them the first 256 KiB block and a tail of 64 KiB (quadrupled once at most).
    assert counting.bytes < 6 * 600_000 < 6 * size
    first = counting.bytes
    assert [found.run for found in store.runs(Query(tool="tool1"))] == [sample.run]
    assert counting.bytes - first >= size  # only now is all of it read


def test_a_tag_in_the_middle_of_a_large_trace_is_found(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "LARGE", 300_000)
    sample = Sample(1)
    parts = [sample.start(), *sample.call(size=200_000), sample.mark("tag", {"ticket": "9"})]
    parts += [
        *sample.call(size=200_000),
        sample.mark("tag", "late"),
        sample.end(),
        sample.mark("flag", "look"),
    ]
    fill(store, sample, *parts)
    row = store.runs()[0]
    assert (row.partial, row.tags, row.flags, row.status) == (True, ("late",), 1, "completed")
    assert store.resolve("late") == sample.run
    assert store.resolve("ticket=9") == sample.run
    assert store.runs(Query(tag="9"))[0].tags == ("ticket=9", "late")


def test_a_large_trace_without_an_end(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "LARGE", 300_000)
    sample = Sample(1)
    parts = [sample.start(), *sample.call(size=400_000)]
    data = fill(store, sample, *parts)
    with open(store.path(sample.run), "ab") as file:
        file.write(sample.end()[:-1])
    row = store.runs()[0]
    assert (row.status, row.partial, row.total) == ("crashed", True, 0)
    assert store.read(sample.run).startswith(data)


# -- read-only places


@pytest.fixture
def read_only(store: LocalStore) -> Iterator[LocalStore]:
    """The store on a file system that is mounted read-only (root may write to a folder without the right to)."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("making a read-only mount needs root on Linux")
    fill(store, Sample(1, tags={"user": "ann"}), Sample(1, tags={"user": "ann"}).whole())
    started = Sample(2)
    fill(store, started, started.start())
    for command in (
        ["mount", "--bind", store.root, store.root],
        ["mount", "-o", "remount,ro,bind", store.root],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no mount here: {done.stderr.strip()}")
    try:
        yield LocalStore(store.root)
    finally:
        subprocess.run(["umount", store.root], check=True)


@pytest.mark.parametrize("indexed", [False, True])
def test_a_read_only_store_is_read_and_listed(read_only: LocalStore, indexed: bool) -> None:
    index = Path(read_only.root) / "index.sqlite"
    if indexed:
        subprocess.run(["mount", "-o", "remount,rw,bind", read_only.root], check=True)
        read_only.runs()
        subprocess.run(["mount", "-o", "remount,ro,bind", read_only.root], check=True)
    else:
        assert not index.exists()
    assert [row.status for row in read_only.runs()] == ["crashed", "completed"]
    assert read_only.resolve("ann") == Sample(1).run
    assert read_only.read(Sample(1).run) == Sample(1, tags={"user": "ann"}).whole()
    for attempt in (
        lambda: read_only.create(Sample(3).run),
        lambda: read_only.reopen(Sample(2).run),
        lambda: read_only.add(Sample(3).whole()),
        lambda: read_only.remove(Sample(1).run),
    ):
        with pytest.raises(StoreFailed, match="read-only"):
            attempt()
