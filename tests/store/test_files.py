"""Single trace files: whole or not at all, compressed frames at entry boundaries, no decompression bombs."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard

from agentloom.errors import FormatError, RunNotFound, StoreFailed
from agentloom.store import files as files_module
from agentloom.store import read_file, write_file
from agentloom.store.files import FRAME, MAX_TRACE_BYTES, compress, decompress, limit_of, write_path
from agentloom.store.osfile import REAL, RealOs
from agentloom.testing.store_contract import Sample


def long_trace() -> bytes:
    sample = Sample()
    parts = [sample.start(), *(part for _ in range(30) for part in sample.call(size=40_000)), sample.end()]
    return b"".join(parts)


@pytest.mark.parametrize("name", ["a.loom", "a.loom.zst", "a.zst", "a"])
@pytest.mark.parametrize("data", [b"", b"no newline", Sample().whole(), long_trace()], ids=len)
def test_what_was_written_is_read(tmp_path: Path, name: str, data: bytes) -> None:
    write_file(tmp_path / name, data)
    assert read_file(tmp_path / name) == data
    assert os.listdir(tmp_path) == [name]
    if name.endswith(".zst") and data:
        assert (tmp_path / name).read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
        assert (tmp_path / name).stat().st_size < len(data) + 32


def test_what_a_file_is_shows_in_its_bytes_not_in_its_name(tmp_path: Path) -> None:
    data = Sample().whole()
    (tmp_path / "plain.zst").write_bytes(data)
    (tmp_path / "packed.loom").write_bytes(compress(data))
    (tmp_path / "skip.loom").write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + compress(data))
    for name in ("plain.zst", "packed.loom", "skip.loom"):
        assert read_file(tmp_path / name) == data


def frames(data: bytes) -> list[bytes]:
    """Each frame's lines, by themselves."""
    found: list[bytes] = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        found.append(frame.decompress(data))
        data = frame.unused_data
    return found


def test_frames_are_independent_and_end_after_an_entry() -> None:
    data = long_trace()
    parts = frames(compress(data))
    assert len(parts) > 3
    assert b"".join(parts) == data
    for part in parts[:-1]:
        assert len(part) >= FRAME
        assert part.endswith(b"\n")
        assert part[:-1].rpartition(b"\n")[2].startswith(b'{"seq":')
    for part in parts[1:]:
        assert not part.startswith(b'{"seq":0,')


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the zstd program")
def test_the_zstd_program_reads_it(tmp_path: Path) -> None:
    data = long_trace()
    write_file(tmp_path / "a.loom.zst", data)
    done = subprocess.run(["zstd", "-dc", tmp_path / "a.loom.zst"], capture_output=True, check=True)
    assert done.stdout == data


# -- bombs and damage


def test_a_bomb_is_refused_within_bounded_memory(tmp_path: Path) -> None:
    codec = zstandard.ZstdCompressor(level=3)
    stream = codec.compressobj()
    bomb = b"".join(stream.compress(bytes(1 << 20)) for _ in range(150)) + stream.flush()
    (tmp_path / "bomb.loom.zst").write_bytes(bomb)
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(StoreFailed, match="limit of 20,000,000 bytes") as caught:
            read_file(tmp_path / "bomb.loom.zst", limit=20_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "AGENTLOOM_MAX_TRACE_BYTES" in str(caught.value)
    assert peak < 150_000_000  # the limit, and what 4 KiB of input can become at most
    assert len(read_file(tmp_path / "bomb.loom.zst", limit=200_000_000)) == 150 << 20


def test_a_frame_that_asks_for_a_huge_window_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=False)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = stream.compress(b"x" * 1000) + stream.flush()
    with pytest.raises(FormatError, match="cannot be decompressed"):
        decompress(data)


def test_the_limit_holds_for_plain_files_and_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Sample().whole()
    write_file(tmp_path / "a.loom", data)
    assert limit_of(None) == MAX_TRACE_BYTES
    with pytest.raises(StoreFailed, match="more than the limit"):
        read_file(tmp_path / "a.loom", limit=len(data) - 1)
    assert read_file(tmp_path / "a.loom", limit=len(data)) == data
    monkeypatch.setenv("AGENTLOOM_MAX_TRACE_BYTES", "100")
    with pytest.raises(StoreFailed, match="limit of 100 bytes"):
        read_file(tmp_path / "a.loom")
    monkeypatch.setenv("AGENTLOOM_MAX_TRACE_BYTES", "lots")
    with pytest.raises(StoreFailed, match="lots"):
        read_file(tmp_path / "a.loom")


def test_damage_names_the_frame() -> None:
    packed = compress(long_trace())
    second = len(packed) - sum(len(compress(part)) for part in frames(packed)[1:])
    for damage in (packed[:-1], packed[: second + 50], packed + b"junk!", packed + b"\x28\xb5\x2f\xfd"):
        with pytest.raises(FormatError) as caught:
            decompress(damage)
        assert caught.value.code == "file.compressed"
    broken = bytearray(packed)
    broken[second + 100] ^= 0x40
    with pytest.raises(FormatError) as caught:
        decompress(bytes(broken))
    assert caught.value.offset == second


# -- places


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "no.loom", tmp_path / "no" / "no.loom"):
        with pytest.raises(RunNotFound, match="no trace file"):
            read_file(path)
        if path.parent != tmp_path:
            with pytest.raises(StoreFailed, match="no such file or folder"):
                write_file(path, b"x")
    for attempt in (lambda: read_file(tmp_path), lambda: write_file(tmp_path, b"x")):
        with pytest.raises(StoreFailed, match="folder"):
            attempt()


def test_modes_and_links_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target.loom", tmp_path / "link.loom"
    write_file(target, b"one\n")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    target.chmod(0o644)
    link.symlink_to(target)
    write_file(link, b"two\n")
    assert link.is_symlink()
    assert target.read_bytes() == b"two\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_a_fresh_file_is_never_put_over_another(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    write_path(REAL, path, b"one", fresh=True)
    with pytest.raises(FileExistsError):
        write_path(REAL, path, b"two", fresh=True)
    assert Path(path).read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


class NoLinks(RealOs):
    def link(self, src: Any, dst: Any, **named: Any) -> None:
        raise OSError(errno.EPERM, "no hard links here")


def test_without_hard_links_too(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    write_path(NoLinks(), path, b"one", fresh=True)
    with pytest.raises(FileExistsError):
        write_path(NoLinks(), path, b"two", fresh=True)
    assert Path(path).read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_two_writers_of_one_name_leave_one_whole_file(tmp_path: Path) -> None:
    names = {files_module.temporary(str(tmp_path / "a.loom")) for _ in range(100)}
    assert len(names) == 100  # never each other's half
    assert {os.path.dirname(name) for name in names} == {str(tmp_path)}
    assert all(os.path.basename(name).startswith(".") for name in names)


def test_a_small_file_of_almost_nothing_is_refused_long_before_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bomb = zstandard.ZstdCompressor().compress(b'{"seq":0,"prev":"' + bytes(100 << 20))
    assert len(bomb) < 20_000
    with pytest.raises(StoreFailed, match="more than the limit"):
        decompress(bomb)
    assert len(decompress(bomb, limit=1 << 28)) > 100 << 20
    monkeypatch.setenv("AGENTLOOM_MAX_TRACE_BYTES", str(1 << 28))
    assert len(decompress(bomb)) > 100 << 20
