"""What would lose a store: told from the kernel's table of mounts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentloom.store import LocalStore, MemoryStore, fate
from agentloom.store.fate import dies_with, file_system_of
from agentloom.store.in_front import InFront

TABLE = """\
22 1 0:21 / / rw,relatime - {root} overlay rw
23 22 0:22 / /proc rw - proc proc rw
24 22 8:1 / /data rw,relatime shared:7 - ext4 /dev/sda1 rw
25 24 0:40 / /data/scratch\\040disk rw - tmpfs tmpfs rw
26 22 0:41 / /data rw - xfs /dev/sdb rw
nonsense
"""


def table(tmp_path: Path, root: str = "overlay") -> str:
    path = tmp_path / "mountinfo"
    path.write_text(TABLE.format(root=root))
    return str(path)


def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = table(tmp_path)
    assert file_system_of("/data/runs", mounts) == "xfs"  # what is mounted later lies on top
    assert file_system_of("/data/scratch disk/runs", mounts) == "tmpfs"
    assert file_system_of("/dataset", mounts) == "overlay"
    assert file_system_of("/data", str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    ("kind", "words"), [("overlay", "container"), ("tmpfs", "in memory"), ("ext4", None)]
)
def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, words: str | None) -> None:
    monkeypatch.setattr(fate, "_MOUNTS", table(tmp_path, kind))
    found = dies_with(LocalStore("/somewhere/runs"))
    if words is None:
        assert found is None
    else:
        assert found is not None
        assert words in found
        assert "AGENTLOOM_STORE" in found


def test_a_store_in_memory_also_behind_another_one() -> None:
    assert "when this process ends" in str(dies_with(MemoryStore()))
    assert dies_with(InFront(MemoryStore())) == dies_with(MemoryStore())


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory")
def test_a_real_file_system_in_memory() -> None:
    assert file_system_of("/dev/shm") == "tmpfs"
