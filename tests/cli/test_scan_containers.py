"""What files fold is read in pieces, within a bound."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path

import pytest
import zstandard

from agentloom.cli import scan_containers
from agentloom.cli.scan_containers import files_of, members_of
from agentloom.errors import NotSupported


def _read(path: Path) -> dict[str, bytes]:
    return {name: b"".join(pieces) for name, pieces in members_of(str(path))}


def _zip(**members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return held.getvalue()


def test_files_and_what_they_fold(tmp_path: Path) -> None:
    plain = b"hello " * 400_000
    path = tmp_path / "file"
    for data in (
        plain,
        gzip.compress(plain),
        zstandard.compress(plain),
        gzip.compress(plain[:99]) + gzip.compress(plain[99:]),
    ):
        path.write_bytes(data)
        assert _read(path) == {str(path): plain}
    path.write_bytes(_zip(a=b"one", b=_zip(c=b"two")))
    assert _read(path) == {f"{path}!a": b"one", f"{path}!b!c": b"two"}
    path.write_bytes(b"")
    assert _read(path) == {str(path): b""}


@pytest.mark.parametrize(
    "data", [gzip.compress(b"x" * 9999)[:-9], zstandard.compress(b"x" * 9999)[:-3], _zip(a=b"x" * 99)[:40]]
)
def test_damaged_files_are_told(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(OSError, match="cannot be unfolded to its end"):
        _read(path)


def test_what_unfolds_to_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_containers, "_FREE", 1 << 20)
    path = tmp_path / "bomb"
    for data in (gzip.compress(b"\0" * (8 << 20)), _zip(a=b"\0" * (8 << 20))):
        path.write_bytes(data)
        with pytest.raises(NotSupported, match="unfolds to far more"):
            _read(path)


def test_regular_files_alone(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [os.path.relpath(path, tmp_path) for path in files_of(str(tmp_path))] == ["a", "sub/b"]
