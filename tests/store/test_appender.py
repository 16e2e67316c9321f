"""The local writer: what the file holds after each thing that can go wrong while writing."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import StoreFailed
from agentloom.store.appender import LocalAppender, checked_durability
from agentloom.store.lease import Lease
from agentloom.store.osfile import RealOs

Write = Callable[[int, bytes], int]


class Scripted(RealOs):
    """Each write is answered by the next step: a count of bytes to take, an errno, an exception, or None (all)."""

    def __init__(self, *steps: int | OSError | BaseException | None) -> None:
        self.steps = list(steps)
        self.synced = 0
        self.truncate: OSError | None = None
        self.sync: OSError | None = None

    def write(self, fd: int, data: Any) -> int:
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, BaseException):
            raise step
        return os.write(fd, data if step is None else bytes(data)[:step])

    def ftruncate(self, fd: int, length: int) -> None:
        if self.truncate:
            raise self.truncate
        os.ftruncate(fd, length)

    def fdatasync(self, fd: Any) -> None:
        self.synced += 1
        if self.sync:
            raise self.sync


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


def writer(tmp_path: Path, system: Scripted, durability: str = "process") -> LocalAppender:
    path = str(tmp_path / "run.loom")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    return LocalAppender(system, path, "run", fd, 0, Lease(system, ()), checked_durability(durability))


def content(tmp_path: Path) -> bytes:
    return (tmp_path / "run.loom").read_bytes()


def test_a_short_write_is_finished(tmp_path: Path) -> None:
    out = writer(tmp_path, Scripted(3, 0 + 1, None))
    out.append(b"first\n")
    out.append(b"second\n")
    out.close()
    assert content(tmp_path) == b"first\nsecond\n"


@pytest.mark.parametrize("steps", [(FULL,), (3, FULL), (3, 1, BROKEN), (0, 0, 0)])
def test_a_failed_entry_leaves_nothing_and_ends_the_writer(
    tmp_path: Path, steps: tuple[int | OSError, ...]
) -> None:
    system = Scripted(None, *steps)
    out = writer(tmp_path, system)
    out.append(b"first\n")
    with pytest.raises(StoreFailed) as caught:
        out.append(b"second\n")
    assert content(tmp_path) == b"first\n"
    assert caught.value.hint
    assert caught.value.fields["acknowledged"] == 6
    assert str(tmp_path / "run.loom") in str(caught.value)
    system.steps = []
    for _ in range(2):  # it would be chained onto an entry that is not there
        with pytest.raises(StoreFailed, match="failed before"):
            out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\n"


def test_when_the_half_entry_stays_nothing_more_is_written(tmp_path: Path) -> None:
    system = Scripted(None, 3, FULL)
    system.truncate = BROKEN
    out = writer(tmp_path, system)
    out.append(b"first\n")
    with pytest.raises(StoreFailed) as caught:
        out.append(b"second\n")
    assert "reopening the run cuts it off" in "".join(caught.value.__notes__)
    for _ in range(2):
        with pytest.raises(StoreFailed, match="failed before"):
            out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\nsec"


def test_power_syncs_each_entry_and_never_goes_on_after_a_failed_sync(tmp_path: Path) -> None:
    system = Scripted()
    out = writer(tmp_path, system, "power")
    out.append(b"first\n")
    assert system.synced == 1
    system.sync = BROKEN
    with pytest.raises(StoreFailed, match="I/O error"):
        out.append(b"second\n")
    system.sync = None
    with pytest.raises(StoreFailed, match="failed before"):
        out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\n"


@pytest.mark.parametrize("steps", [(), (4,)], ids=["before any byte", "in the middle"])
@pytest.mark.parametrize("ended_by", ["append", "close"])
def test_an_interrupted_entry_is_finished_next(tmp_path: Path, steps: tuple[int, ...], ended_by: str) -> None:
    out = writer(tmp_path, Scripted(None, *steps, KeyboardInterrupt()))
    out.append(b"first\n")
    with pytest.raises(KeyboardInterrupt):
        out.append(b"second\n")
    if ended_by == "append":
        out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\nsecond\n" + (b"third\n" if ended_by == "append" else b"")


class InterruptedAfter(Scripted):
    """Writes everything, and then the signal handler raises."""

    def write(self, fd: int, data: Any) -> int:
        count = os.write(fd, data)
        if bytes(data) == b"second\n":
            raise KeyboardInterrupt
        return count


def test_an_entry_interrupted_after_its_write_is_not_written_twice(tmp_path: Path) -> None:
    out = writer(tmp_path, InterruptedAfter())
    out.append(b"first\n")
    with pytest.raises(KeyboardInterrupt):
        out.append(b"second\n")
    out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\nsecond\nthird\n"


def test_finishing_an_interrupted_entry_can_fail_too(tmp_path: Path) -> None:
    system = Scripted(None, 4, KeyboardInterrupt(), FULL)
    out = writer(tmp_path, system)
    out.append(b"first\n")
    with pytest.raises(KeyboardInterrupt):
        out.append(b"second\n")
    with pytest.raises(StoreFailed, match="no space"):
        out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\n"


def test_a_file_that_somebody_else_changed_is_left_alone(tmp_path: Path) -> None:
    out = writer(tmp_path, Scripted(None, KeyboardInterrupt()))
    out.append(b"first\n")
    with pytest.raises(KeyboardInterrupt):
        out.append(b"second\n")
    with open(tmp_path / "run.loom", "ab") as file:
        file.write(b"x" * 50)
    with pytest.raises(StoreFailed, match="somebody else"):
        out.append(b"third\n")
    out.close()
    assert content(tmp_path) == b"first\n" + b"x" * 50


def test_a_forgotten_writer_is_said_and_its_lease_given_back(tmp_path: Path) -> None:
    kept = [writer(tmp_path, Scripted())]
    kept[0].append(b"first\n")
    with pytest.warns(ResourceWarning, match="never closed"):
        kept.clear()
    assert content(tmp_path) == b"first\n"


def test_an_append_costs_little_beyond_its_write(tmp_path: Path) -> None:
    """The bound is wide (a loaded machine): 5 us are promised, medians of interleaved rounds are compared."""
    out = writer(tmp_path, RealOs())  # type: ignore[arg-type]
    fd = os.open(tmp_path / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    line = b'{"seq":0}' * 50 + b"\n"
    bare: list[int] = []
    ours: list[int] = []
    for _ in range(300):
        before = time.perf_counter_ns()
        for _ in range(10):
            os.write(fd, line)
        middle = time.perf_counter_ns()
        for _ in range(10):
            out.append(line)
        bare.append(middle - before)
        ours.append(time.perf_counter_ns() - middle)
    os.close(fd)
    out.close()
    more = (sorted(ours)[150] - sorted(bare)[150]) / 10
    print(f"{more:.0f} ns more than a bare write of {sorted(bare)[150] / 10:.0f} ns")
    assert more < 5_000
