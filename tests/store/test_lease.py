"""One writer a run, whoever dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentloom.errors import LeaseHeld
from agentloom.store import LocalStore
from agentloom.store.lease import Owner, owner_path
from agentloom.store.osfile import RealOs
from agentloom.testing.store_contract import Sample, fill

HOLDER = """
import sys
from agentloom.store import LocalStore
writer = LocalStore(sys.argv[1]).create(sys.argv[2])
writer.append(bytes.fromhex(sys.argv[3]))
print("holding", flush=True)
sys.stdin.read()
"""


def holder(root: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, root, Sample().run, Sample().start().hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "holding\n"
    return process


def reap(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_lease_of_another_process_is_refused_with_its_name(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    process = holder(store.root)
    try:
        assert [row.status for row in store.runs()] == ["running"]
        assert store.read(Sample().run) == Sample().start()
        for attempt in (store.reopen, store.create, store.remove):
            with pytest.raises(LeaseHeld) as caught:
                attempt(Sample().run)
            for word in (f"process {process.pid} ", socket.gethostname(), "since 2"):
                assert word in str(caught.value)
    finally:
        reap(process)


def test_a_killed_writer_gives_the_lease_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    process = holder(store.root)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert os.path.exists(owner_path(str(tmp_path / "leases"), Sample().run))  # it names nobody any more
    assert [row.status for row in store.runs()] == ["crashed"]
    store.reopen(Sample().run).close()
    assert os.listdir(tmp_path / "leases") == []


RACER = """
import sys
from agentloom.errors import LeaseHeld
from agentloom.store import LocalStore
store = LocalStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    writer = store.reopen(sys.argv[2])
except LeaseHeld as error:
    print("told", error.fields["pid"], flush=True)
else:
    print("won", flush=True)
    sys.stdin.readline()
    writer.close()
"""


def test_of_six_processes_one_goes_on_and_five_are_told_which(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    fill(store, Sample(), Sample().start())
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, store.root, Sample().run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    answers: dict[int, str] = {}
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        assert racer.stdout
        answers[racer.pid] = racer.stdout.readline().strip()
    for racer in racers:
        racer.communicate("end\n", timeout=30)
    winners = [pid for pid, answer in answers.items() if answer == "won"]
    assert len(winners) == 1
    # A loser that looks before the winner has written its name knows only that there is one.
    losers = {answer for answer in answers.values() if answer != "won"}
    assert losers <= {f"told {winners[0]}", "told None"}
    assert [row.status for row in store.runs()] == ["crashed"]


LISTER = """
import sys
from agentloom.store import LocalStore
store = LocalStore(sys.argv[1])
print("go", flush=True)
for _ in range(200):
    store.runs()
"""


def test_asking_who_writes_never_costs_a_writer_its_lease(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    process = holder(store.root)
    reap(process)  # leaves its owner file: every listing has to ask for the lock
    lister = subprocess.Popen(
        [
            sys.executable,
            "-c",
            LISTER,
            store.root,
        ],
        stdout=subprocess.PIPE,
    )
    assert lister.stdout
    lister.stdout.readline()
    rounds = 0
    while lister.poll() is None and rounds < 100:
        store.reopen(Sample().run).close()
        Path(owner_path(str(tmp_path / "leases"), Sample().run)).write_bytes(b"{}")
        rounds += 1
    lister.communicate()
    assert rounds > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_write_and_does_not_keep_the_lease(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    sample = Sample()
    writer = store.create(sample.run)
    writer.append(sample.start())
    ready, tell = os.pipe()
    hold, release = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        from agentloom.errors import StoreFailed

        try:
            writer.append(sample.end())
            os.write(tell, b"wrote")
        except StoreFailed as error:
            os.write(tell, b"forked" if "forked" in str(error) else b"other")
        os.close(release)
        os.read(hold, 1)
        os._exit(0)
    try:
        assert os.read(ready, 99) == b"forked"
        writer.append(sample.end())
        writer.close()
        store.reopen(sample.run).close()  # although the child still lives
    finally:
        os.close(release)
        os.waitpid(child, 0)
        for fd in (ready, tell, hold):
            os.close(fd)
    assert store.runs()[0].status == "completed"


class NoLocks(RealOs):
    def flock(self, fd: int, *, shared: bool = False) -> bool:
        return False


def test_without_file_locks_a_lock_file_says_so_loudly(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, system=NoLocks())
    sample = Sample()
    with pytest.warns(RuntimeWarning, match="deleted by hand"):
        writer = store.create(sample.run)
    writer.append(sample.start())
    assert store.runs()[0].status == "running"
    with pytest.warns(RuntimeWarning), pytest.raises(LeaseHeld, match="delete") as caught:
        store.reopen(sample.run)
    assert caught.value.fields["pid"] == os.getpid()
    writer.close()
    assert store.runs()[0].status == "crashed"


def test_the_lock_file_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, system=NoLocks())
    sample = Sample()
    fill(LocalStore(tmp_path), sample, sample.start())
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    lock = tmp_path / "leases" / f"{sample.run}.lock"
    lock.write_bytes(Owner(dead.pid, socket.gethostname(), time.time_ns()).dump())
    assert store.runs()[0].status == "crashed"
    with pytest.warns(RuntimeWarning):
        store.reopen(sample.run).close()
    lock.write_bytes(Owner(dead.pid, "another host", time.time_ns()).dump())
    assert store.runs()[0].status == "running"
    with pytest.warns(RuntimeWarning), pytest.raises(LeaseHeld, match="another host"):
        store.reopen(sample.run)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid":"x"}', b"\xff"])
def test_an_unreadable_owner_names_nobody(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "owner.json"
    path.write_bytes(content)
    assert Owner.load(RealOs(), str(path)) is None
