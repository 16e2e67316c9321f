"""Mail of a local store: whole files, numbered, one winner, whatever fails and whoever dies."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.errors import FormatError, MailTaken, NotSupported, StoreFailed
from agentloom.store import LocalStore, Mail
from agentloom.store.osfile import RealOs
from agentloom.testing.store_contract import Sample, fill

ANSWER = Mail("answer", "7", value="yes", who="ann", at=5)


def store_with_run(root: Path, system: RealOs | None = None) -> tuple[LocalStore, str]:
    sample = Sample()
    fill(LocalStore(root), sample, sample.start())
    return LocalStore(root, system=system or RealOs()), sample.run


def test_files_are_private_whole_and_numbered(tmp_path: Path) -> None:
    store, run = store_with_run(tmp_path / "s")
    store.post(run, ANSWER)
    store.post(run, Mail("cancel", "cancel"))
    folder = tmp_path / "s" / "mail" / run
    assert sorted(os.listdir(folder)) == ["00000001.json", "00000002.json"]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    store.remove(run)
    assert os.listdir(tmp_path / "s" / "mail") == []


def test_mail_is_synced_before_it_is_seen_and_its_folder_after(tmp_path: Path) -> None:
    class Told(RealOs):
        def __init__(self) -> None:
            self.names: list[str] = []

        def fsync(self, fd: int) -> None:  # type: ignore[override]
            self.names.append("fsync")

        def link(self, source: str, target: str) -> None:  # type: ignore[override]
            self.names.append("link")
            os.link(source, target)

    system = Told()
    store, run = store_with_run(tmp_path / "s", system)
    store.post(run, ANSWER)
    assert system.names[-3:] == ["fsync", "link", "fsync"]


def test_who_died_between_link_and_sync_has_posted_and_the_next_one_is_told(tmp_path: Path) -> None:
    class Dies(RealOs):
        def link(self, source: str, target: str) -> None:  # type: ignore[override]
            os.link(source, target)
            raise KeyboardInterrupt

    store, run = store_with_run(tmp_path / "s", Dies())
    with pytest.raises(KeyboardInterrupt):
        store.post(run, ANSWER)
    after = LocalStore(tmp_path / "s")
    assert after.mail(run) == [ANSWER]
    with pytest.raises(MailTaken, match="ann"):
        after.post(run, ANSWER)


def test_a_leftover_of_a_killed_process_is_no_mail(tmp_path: Path) -> None:
    class Killed(RealOs):
        def link(self, source: str, target: str) -> None:  # type: ignore[override]
            raise KeyboardInterrupt

        def unlink(self, path: str) -> None:  # type: ignore[override]
            pass

    store, run = store_with_run(tmp_path / "s", Killed())
    with pytest.raises(KeyboardInterrupt):
        store.post(run, ANSWER)
    after = LocalStore(tmp_path / "s")
    assert len(os.listdir(tmp_path / "s" / "mail" / run)) == 1
    assert after.mail(run) == []
    after.post(run, ANSWER)
    assert after.mail(run) == [ANSWER]
    after.remove(run)
    assert os.listdir(tmp_path / "s" / "mail") == []


def test_without_hard_links_nothing_is_posted(tmp_path: Path) -> None:
    class NoLinks(RealOs):
        def link(self, source: str, target: str) -> None:  # type: ignore[override]
            raise OSError(errno.EPERM, "Operation not permitted")

    store, run = store_with_run(tmp_path / "s", NoLinks())
    with pytest.raises(NotSupported, match="hard links"):
        store.post(run, ANSWER)
    assert LocalStore(tmp_path / "s").mail(run) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_what_the_disk_refuses_is_said_and_nothing_is_half_there(tmp_path: Path, code: int) -> None:
    class Refuses(RealOs):
        def write(self, fd: int, data: bytes | memoryview) -> int:  # type: ignore[override]
            raise OSError(code, os.strerror(code))

    store, run = store_with_run(tmp_path / "s", Refuses())
    with pytest.raises(StoreFailed) as caught:
        store.post(run, ANSWER)
    assert errno.errorcode[code] in str(caught.value)
    assert LocalStore(tmp_path / "s").mail(run) == []


def test_damage_names_the_file(tmp_path: Path) -> None:
    store, run = store_with_run(tmp_path / "s")
    store.post(run, ANSWER)
    path = tmp_path / "s" / "mail" / run / "00000001.json"
    for bad in (b"", b"{", b"[]\n", b'{"mail":2}\n', path.read_bytes().replace(b'"at":5', b'"at":"5"')):
        path.write_bytes(bad)
        with pytest.raises(FormatError, match="00000001"):
            store.mail(run)
        with pytest.raises(FormatError, match="00000001"):
            store.post(run, Mail("answer", "8"))


PROGRAM = """
import sys
from agentloom.errors import MailTaken
from agentloom.store import LocalStore, Mail
store = LocalStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    store.post(sys.argv[2], Mail("answer", "7", value=sys.argv[3], who=sys.argv[3], at=int(sys.argv[3]) + 1))
    store.post(sys.argv[2], Mail("signal", sys.argv[3], "news", int(sys.argv[3])))
    print("posted", sys.argv[3])
except MailTaken as taken:
    store.post(sys.argv[2], Mail("signal", sys.argv[3], "news", int(sys.argv[3])))
    print("taken", taken.existing.who)
"""


def test_of_twenty_processes_one_wins_and_nineteen_are_told_who(tmp_path: Path) -> None:
    store, run = store_with_run(tmp_path / "s")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "s"), run]
    crowd = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(20)
    ]
    for one in crowd:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in crowd:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [one.communicate(timeout=60)[0].split() for one in crowd]
    winners = [who for what, who in said if what == "posted"]
    assert len(winners) == 1
    assert [who for what, who in said if what == "taken"] == winners * 19
    mail = store.mail(run)
    assert [one.who for one in mail if one.kind == "answer"] == winners
    assert sorted(one.value for one in mail if one.kind == "signal") == list(range(20))  # type: ignore[type-var]
