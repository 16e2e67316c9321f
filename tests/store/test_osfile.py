"""The seam to the operating system: short writes, spans, and errors in words."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from agentloom.store.osfile import REAL, RealOs, failed, read_span, write_all


class Slow(RealOs):
    """Writes at most three bytes at a time."""

    def __init__(self) -> None:
        self.writes = 0

    def write(self, fd: int, data: Any) -> int:
        self.writes += 1
        return os.write(fd, bytes(data)[:3])


class Stuck(RealOs):
    def write(self, fd: int, data: Any) -> int:
        return 0


def test_short_writes_are_gone_on_with(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    slow = Slow()
    write_all(slow, fd, b"0123456789")
    with pytest.raises(OSError, match="no progress"):
        write_all(Stuck(), fd, b"more")
    os.close(fd)
    assert (Path(path).read_bytes(), slow.writes) == (b"0123456789", 4)


def test_spans(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    assert read_span(REAL, str(path)) == b"0123456789"
    assert read_span(REAL, str(path), 4) == b"456789"
    assert read_span(REAL, str(path), 4, 2) == b"45"
    assert read_span(REAL, str(path), 8, 99) == b"89"
    assert read_span(REAL, str(path), 3, 0) == b""


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT, errno.ENOTTY]
)
def test_every_failure_has_reason_and_remedy(code: int) -> None:
    error = failed("write", "/store/x", OSError(code, os.strerror(code)), run="r1")
    assert "/store/x" in error.message
    assert errno.errorcode[code] in error.message
    assert error.hint
    assert (error.fields["errno"], error.fields["run"]) == (code, "r1")


def test_a_second_lock_is_refused_even_in_one_process(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    first, second = (os.open(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert REAL.flock(first)
    for shared in (False, True):
        with pytest.raises(BlockingIOError):
            REAL.flock(second, shared=shared)
    os.close(first)
    assert REAL.flock(second, shared=True)
    os.close(second)
