"""Mail, where the n-th operation of the system fails or is the last of its process: what was acknowledged is there,
whole and in order; what was not is there whole or not at all, and posting it again tells."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from agentloom.errors import MailTaken, RunNotFound, StoreFailed
from agentloom.store import LocalStore, Mail
from agentloom.store.osfile import REAL
from agentloom.testing.store_contract import Sample, fill
from tests.faults.test_store_faults import MOST, Dies, forks, in_child

POSTED = [
    Mail("answer", "2", value="yes" * 2000, who="ann", at=1),
    Mail("signal", "m1", "paid", {"n": 1}, at=2),
    Mail("signal", "m2", "paid", {"n": 2}, at=3),
]
RUN, GONE = Sample(1).run, Sample(2).run


def prepare(root: Path) -> None:
    """Two runs, one of which has mail already."""
    store = LocalStore(root)
    for number in (1, 2):
        sample = Sample(number)
        fill(store, sample, sample.start())
    store.post(GONE, POSTED[0])


def scenario(store: LocalStore, told: Any) -> None:
    for number, mail in enumerate(POSTED):
        store.post(RUN, mail)
        told(f"posted {number}")
        assert store.mail(RUN) == POSTED[: number + 1]
    store.remove(GONE)
    told("removed")


def recover(root: Path, said: list[str]) -> None:
    """With a healthy system again."""
    store = LocalStore(root)
    count = sum(line.startswith("posted") for line in said)
    there = store.mail(RUN)
    assert there[:count] == POSTED[:count]
    assert there == POSTED[: len(there)]
    assert len(there) <= count + 1
    for mail in POSTED[count:]:
        with contextlib.suppress(MailTaken):
            store.post(RUN, mail)
    assert store.mail(RUN) == POSTED
    if "removed" in said:
        with pytest.raises(RunNotFound):
            store.mail(GONE)
        assert not (root / "mail" / GONE).exists()
    for run in (RUN, GONE):
        with contextlib.suppress(RunNotFound):
            store.remove(run)
        assert not (root / "mail" / run).exists()


@pytest.mark.parametrize("kind", [errno.EIO, errno.ENOSPC, errno.EROFS, "short"])
@pytest.mark.parametrize("sticky", [False, True])
def test_any_operation_may_fail(tmp_path: Path, faulty: Any, kind: int | str, *, sticky: bool) -> None:
    hit: set[str] = set()
    for n in range(1, MOST):
        root = tmp_path / str(n)
        prepare(root)
        system = faulty(n, kind, sticky=sticky)
        said: list[str] = []
        with contextlib.suppress(StoreFailed):
            scenario(LocalStore(root, system=system), said.append)
        recover(root, said)
        if system.failed is not None:
            hit.add(system.failed)
        elif system.done < n:
            break
    else:
        pytest.fail(f"not through after {MOST} operations")
    assert hit >= (
        {"write"} if kind == "short" else {"open", "write", "fsync", "link", "mkdir", "listdir", "read"}
    )


class _Killed:
    pytestmark = forks


class TestKilled(_Killed):
    def test_any_operation_may_be_the_last(self, tmp_path: Path) -> None:
        for n in range(1, MOST):
            root = tmp_path / str(n)
            prepare(root)

            def work(tell: Any, root: Path = root, n: int = n) -> None:
                scenario(LocalStore(root, system=Dies(REAL, n)), tell)

            status, said = in_child(work)
            recover(root, said)
            if status == 0:
                break
            assert status < 0, (status, said)
        else:
            pytest.fail(f"not through after {MOST} operations")
        assert n > 30


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_store_that_is_read_only_says_so(tmp_path: Path) -> None:
    prepare(tmp_path)
    os.chmod(tmp_path / "mail", 0o500)
    try:
        with pytest.raises(StoreFailed, match="permission denied"):
            LocalStore(tmp_path).post(RUN, POSTED[0])
    finally:
        os.chmod(tmp_path / "mail", 0o700)
