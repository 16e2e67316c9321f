"""The n-th operation of the operating system fails, for every n: nothing acknowledged is lost, no half entry is seen.

Three ways to fail: an error, a disk that fills up in the middle of a write, and the death of the process.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import LoomError, RunNotFound, StoreFailed
from agentloom.format.journal import Journal, check
from agentloom.store import LocalStore, read_file, write_file
from agentloom.testing.store_contract import Sample

MOST = 400  # operations after which a scenario that never gets through is itself a failure

linux_root = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="mounting needs root on Linux"
)
forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def parts_of(number: int) -> list[bytes]:
    """The appends of one run: a start, three calls, an end."""
    sample = Sample(number)
    parts = [sample.start()]
    for name in ("a", "b", "c"):
        parts += sample.call("tool", name, size=3000)
    return [*parts, sample.end()]


RECORDED, IMPORTED, RESUMED = (Sample(number).run for number in (1, 2, 3))


class Told:
    """What the store acknowledged: so many appends of each run, and what it wants to say about it."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self.appends: dict[str, int] = {}
        self.removed: set[str] = set()
        self.tell = tell

    def appended(self, run: str, count: int = 1) -> None:
        self.appends[run] = self.appends.get(run, 0) + count
        self.tell(f"append {run} {count}")

    def gone(self, run: str) -> None:
        self.removed.add(run)
        self.tell(f"remove {run}")


def prepare(root: Path) -> None:
    """A run that stopped in the middle of its third entry, and one that will be removed."""
    store = LocalStore(root)
    parts = parts_of(3)
    writer = store.create(RESUMED)
    for part in parts[:2]:
        writer.append(part)
    writer.close()
    with open(store.path(RESUMED), "ab") as file:
        file.write(parts[2][:100])
    store.add(b"".join(parts_of(4)))


def scenario(store: LocalStore, told: Told) -> None:
    """Everything that a store does, telling what was acknowledged."""
    writers: list[Any] = []
    try:
        writers.append(store.create(RECORDED))
        for part in parts_of(1):
            writers[-1].append(part)
            told.appended(RECORDED)
        writers.pop().close()
        store.add(b"".join(parts_of(2)))
        told.appended(IMPORTED, len(parts_of(2)))
        writers.append(store.reopen(RESUMED))
        for part in parts_of(3)[2:]:
            writers[-1].append(part)
            told.appended(RESUMED)
        writers.pop().close()
        assert [row.status for row in store.runs()] == ["completed"] * 4
        assert store.resolve("last") == Sample(4).run
        assert store.read(RECORDED) == b"".join(parts_of(1))
        store.remove(Sample(4).run)
        told.gone(Sample(4).run)
    finally:
        for writer in writers:
            with contextlib.suppress(StoreFailed):
                writer.close()


def recover(root: Path, told: Told) -> None:
    """With a healthy system again: what was acknowledged is there, and every run can be gone on with to its end."""
    store = LocalStore(root)
    rows = {row.run: row for row in store.runs()}
    assert not [row for row in rows.values() if row.status in ("damaged", "running")]
    for number, run in ((1, RECORDED), (2, IMPORTED), (3, RESUMED)):
        parts = parts_of(number)
        kept = told.appends.get(run, 0) + (2 if run == RESUMED else 0)
        if not kept and run not in rows:
            continue
        try:
            data = store.read(run)
            writer = store.reopen(run)
        except (RunNotFound, StoreFailed, LoomError):
            # Only a run that never got to its first acknowledged entry may be unusable.
            assert kept == 0
            store.remove(run)
            continue
        assert data.startswith(b"".join(parts[:kept])), f"{run}: {kept} acknowledged"
        journal = Journal.parse(store.read(run))
        whole = len(journal.entries)
        # At most what was in flight is there as well: one entry, or an import as a whole.
        assert whole in ((kept, len(parts)) if run == IMPORTED else (kept, kept + 1))
        for part in parts[whole:]:
            writer.append(part)
        writer.close()
        assert store.read(run) == b"".join(parts)
        verdict = check(store.read(run))
        assert verdict.consistent
        assert verdict.complete
    for run in told.removed:
        assert run not in rows
    assert {row.status for row in store.runs()} <= {"completed"}


KINDS = [errno.EIO, errno.ENOSPC, errno.EROFS, "short"]


@pytest.mark.parametrize(
    ("kind", "sticky", "durability"),
    [
        (errno.EIO, False, "process"),
        (errno.ENOSPC, False, "process"),
        (errno.EROFS, True, "process"),
        (errno.ENOSPC, True, "process"),
        ("short", False, "process"),
        (errno.EIO, False, "power"),
        ("short", False, "power"),
    ],
)
def test_any_operation_may_fail(
    tmp_path: Path, faulty: Any, kind: int | str, sticky: bool, durability: Any
) -> None:
    hit: set[str] = set()
    refused = 0
    for n in range(1, MOST):
        root = tmp_path / str(n)
        prepare(root)
        system = faulty(n, kind, sticky=sticky)
        told = Told()
        try:
            scenario(LocalStore(root, system=system, durability=durability), told)
        except StoreFailed as error:
            refused += bool(error.hint)
        except AssertionError:
            # A listing may be short of what could not be read, but only where something did fail.
            assert system.failed is not None
        recover(root, told)
        if system.failed is not None:
            hit.add(system.failed)
        elif system.done < n:
            break
    else:
        pytest.fail(f"not through after {MOST} operations")
    assert refused >= 10
    assert hit >= (
        {"write"} if kind == "short" else {"open", "write", "read", "flock", "ftruncate", "fsync", "link"}
    )


@pytest.mark.parametrize("name", ["a.loom", "a.loom.zst"])
@pytest.mark.parametrize(
    "kind", KINDS, ids=lambda kind: kind if isinstance(kind, str) else errno.errorcode[kind]
)
def test_a_saved_file_is_the_old_one_or_the_new_one(
    tmp_path: Path, faulty: Any, kind: int | str, name: str
) -> None:
    path = tmp_path / name
    old, new = b"".join(parts_of(1)), b"".join(parts_of(2))
    for n in range(1, MOST):
        write_file(path, old)
        system = faulty(n, kind)
        try:
            write_file(path, new, system=system)
        except StoreFailed:
            assert read_file(path) == (new if system.failed == "unlink" else old)
        else:
            assert read_file(path) == new
        assert os.listdir(tmp_path) == [name]
        if system.done < n:
            break
    assert n > 4


# -- the process dies


class Dies:
    """Makes the n-th operation the last one of this process; a write gets half of its bytes out first."""

    def __init__(self, system: Any, at: int) -> None:
        self.system = system
        self.at = at
        self.done = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.system, name)

        def operation(*args: Any, **named: Any) -> Any:
            self.done += 1
            if self.done == self.at:
                if name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        return operation


def in_child(work: Callable[[Callable[[str], None]], None]) -> tuple[int, list[str]]:
    """Run ``work`` in a forked child; its exit status (negative: the signal) and the lines that it told."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        status = 70
        try:
            gc.freeze()  # what the parent holds is no garbage of the child's, and walking over it copies it
            os.close(read)
            work(lambda line: (os.write(write, f"{line}\n".encode()), None)[1])
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with open(read, encoding="utf-8") as told:
        lines = told.read().splitlines()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), lines


def heard(lines: list[str]) -> Told:
    told = Told()
    for line in lines:
        verb, run, *count = line.split()
        if verb == "append":
            told.appended(run, int(count[0]))
        else:
            told.gone(run)
    return told


@forks[0]
@forks[1]
def test_death_at_any_operation(tmp_path: Path, faulty: Any) -> None:
    for n in range(1, MOST):
        root = tmp_path / str(n)
        prepare(root)
        system = Dies(faulty(), n)
        status, lines = in_child(lambda tell: scenario(LocalStore(root, system=system), Told(tell)))  # noqa: B023
        recover(root, heard(lines))
        if status == 0:
            break
        assert status == -signal.SIGKILL
    else:
        pytest.fail(f"not through after {MOST} operations")
    assert n > 30


class Pieces:
    """Writes 24 bytes at a time: most instants are in the middle of an entry."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def write(self, fd: int, data: Any) -> int:
        return os.write(fd, bytes(data[:24]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.system, name)


@forks[0]
@forks[1]
def test_kill_at_random_instants(tmp_path: Path, faulty: Any) -> None:
    seed = 20
    print(f"seed {seed}")
    chance = random.Random(seed)
    torn = 0
    for kill in range(30):
        root = tmp_path / str(kill)
        sample = Sample(kill)
        parts = [sample.start(), *(part for _ in range(200) for part in sample.call(size=500))]
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover - the child
            writer = LocalStore(root, system=Pieces(faulty())).create(sample.run)
            for part in parts:
                writer.append(part)
                os.write(tell, b".")
            os._exit(0)
        os.close(tell)
        count = 0
        for _ in range(chance.randrange(1, 60)):
            count += len(os.read(told, 1))
        for _ in range(chance.randrange(20_000)):
            pass  # some microseconds into the next entry
        os.kill(child, signal.SIGKILL)
        while got := os.read(told, 4096):
            count += len(got)
        os.close(told)
        os.waitpid(child, 0)

        store = LocalStore(root)
        assert [row.status for row in store.runs()] == ["crashed"]
        writer = store.reopen(sample.run)
        torn += bool(writer.cut)
        data = store.read(sample.run)
        whole = len(Journal.parse(data).entries)
        assert whole in (count, count + 1)
        assert data == b"".join(parts[:whole])
        for part in [*parts[whole:], sample.end()]:
            writer.append(part)
        writer.close()
        assert check(store.read(sample.run)).complete
    print(f"{torn} of 30 kills left a torn end")
    assert torn >= 1  # how many depends on the machine; test_death_at_any_operation tears on purpose


# -- a disk that is really full


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no mount here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # Lazily: a test that failed may still hold a writer open.
        subprocess.run(["umount", "-l", str(folder)], check=True)


@linux_root
def test_a_full_disk(tiny: Path) -> None:
    store = LocalStore(tiny / "store")
    ballast = tiny / "ballast"
    ballast.write_bytes(bytes(60_000))
    sample = Sample()
    parts = [sample.start(), *(part for _ in range(40) for part in sample.call(size=9000)), sample.end()]
    writer = store.create(sample.run)
    done = 0
    with pytest.raises(StoreFailed, match="no space left") as caught:  # noqa: PT012 - the first that fails
        for part in parts:
            writer.append(part)
            done += 1
    assert "--store" in str(caught.value)
    assert store.read(sample.run) == b"".join(parts[:done])
    assert [row.status for row in store.runs()] == ["running"]
    with pytest.raises(StoreFailed, match="no space left"):
        store.add(big_trace())
    assert len(store.runs()) == 1
    ballast.unlink()
    with pytest.raises(StoreFailed, match="failed before"):
        writer.append(parts[done + 1])
    writer.close()
    writer = store.reopen(sample.run)
    assert writer.cut == 0
    for part in parts[done : done + 4]:
        writer.append(part)
    writer.close()
    assert store.read(sample.run) == b"".join(parts[: done + 4])
    assert check(store.read(sample.run)).consistent
    store.reopen(sample.run).close()


def big_trace() -> bytes:
    sample = Sample(9)
    return b"".join([sample.start(), *sample.call(size=300_000), sample.end()])
