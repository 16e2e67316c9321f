"""Single trace files: ``.loom`` as it is, ``.loom.zst`` in independent zstd frames that end at entry boundaries.

Files are written beside their target and renamed over it: a reader sees the old file or the new one, never half.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Generator, Iterator

import zstandard

from agentloom.errors import FormatError, RunNotFound, StoreFailed
from agentloom.store.lines import append_ends
from agentloom.store.osfile import CLOEXEC, NOFOLLOW, REAL, Os, failed, read_span, shut, write_all
from agentloom.store.scan import LARGE, Source

__all__ = [
    "FRESH",
    "MAX_TRACE_BYTES",
    "MAX_WINDOW",
    "compress",
    "decompress",
    "is_compressed",
    "large_file",
    "limit_of",
    "read_file",
    "read_path",
    "temporary",
    "write_file",
    "write_path",
]

MAX_TRACE_BYTES = 1 << 30
"""The most bytes of one uncompressed trace that are read into memory, unless AGENTLOOM_MAX_TRACE_BYTES or ``limit``
says otherwise."""

MAX_WINDOW = 1 << 27
"""The largest zstd window (bytes of memory that a frame may ask for) that is accepted."""

FRAME = 1 << 18  # bytes of lines that a frame holds at least, where the trace is long enough
_LEVEL = 12
_FREE, _RATIO = 1 << 26, 50
"""A file of n bytes may hold _FREE + _RATIO * n bytes of lines, unless a limit was given: every entry holds a digest,
which does not compress, and a tenth is what traces come down to."""
_FEED = 4096  # bytes handed to the decompressor at a time: 128 MiB out of it at the very most
_MAGIC = b"\x28\xb5\x2f\xfd"
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOEXEC | NOFOLLOW


def limit_of(limit: int | None) -> int:
    """``limit``, else AGENTLOOM_MAX_TRACE_BYTES, else `MAX_TRACE_BYTES`; `StoreFailed` when it is no number."""
    if limit is not None:
        return limit
    text = os.environ.get("AGENTLOOM_MAX_TRACE_BYTES")
    if not text:
        return MAX_TRACE_BYTES
    if not text.isascii() or not text.isdigit():
        raise StoreFailed(
            f"AGENTLOOM_MAX_TRACE_BYTES is {text[:40]!r}, not a number of bytes",
            hint="set it to digits, or unset it",
        )
    return int(text)


def _too_large(where: str, size: str, limit: int) -> StoreFailed:
    return StoreFailed(
        f"{where} holds {size}, more than the limit of {limit:,} bytes",
        hint="if you trust the file, set AGENTLOOM_MAX_TRACE_BYTES to a larger number of bytes",
        path=where,
        limit=limit,
    )


def is_compressed(data: bytes) -> bool:
    """Whether the bytes begin as a zstd frame (also a skippable one)."""
    return data[:4] == _MAGIC or (len(data) >= 4 and data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50)


def compress(data: bytes) -> bytes:
    """zstd frames of at least 256 KiB of lines each (the last may be shorter), each decompressing by itself."""
    codec = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True)
    return b"".join(codec.compress(data[start:end]) for start, end in _frames(data))


@contextlib.contextmanager
def large_file(path: str | os.PathLike[str], system: Os = REAL) -> Generator[Source | None]:
    """A large trace for reading parts of it while the block lasts; None where the file is small or compressed, or
    cannot be opened (reading it whole then says why). `StoreFailed` when a part cannot be read."""
    name = os.fspath(path)
    try:
        fd = system.open(name, os.O_RDONLY | CLOEXEC)
    except OSError:
        yield None
        return
    try:
        found = system.fstat(fd)

        def span(start: int, count: int) -> bytes:
            parts: list[bytes] = []
            try:
                system.seek(fd, start)
                while count > 0 and (part := system.read(fd, count)):
                    parts.append(part)
                    count -= len(part)
            except OSError as error:
                raise failed("read", name, error) from error
            return b"".join(parts)

        large = stat.S_ISREG(found.st_mode) and found.st_size > LARGE and not is_compressed(span(0, 4))
        yield Source(found.st_size, span) if large else None
    finally:
        shut(system, fd)


def _frames(data: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    for end in append_ends(data):
        if end - start >= FRAME:
            yield start, end
            start = end
    if start < len(data):
        yield start, len(data)


def decompress(data: bytes, *, limit: int | None = None, where: str = "the compressed trace") -> bytes:
    """The lines of a compressed trace.

    `StoreFailed` when they would be more than ``limit`` bytes; `FormatError` (``file.compressed``, byte offset of the
    frame) when the frames are damaged or cut off.
    """
    most = limit_of(limit)
    if limit is None and not os.environ.get("AGENTLOOM_MAX_TRACE_BYTES"):
        most = min(most, _FREE + _RATIO * len(data))
    lines = io.BytesIO()  # hands out what it holds without a second copy
    size = start = 0
    codec = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    while start < len(data):
        frame = codec.decompressobj()
        at = start
        while not frame.eof and at < len(data):
            try:
                part = frame.decompress(data[at : at + _FEED])
            except zstandard.ZstdError as error:
                raise _damaged(where, start, str(error)) from error
            at += len(data[at : at + _FEED])
            size += len(part)
            if size > most:
                raise _too_large(where, f"more than {most:,} bytes when decompressed", most)
            lines.write(part)
        if not frame.eof:
            raise _damaged(where, start, "the file ends inside this frame")
        start = at - len(frame.unused_data)
    return lines.getvalue()


def _damaged(where: str, offset: int, why: str) -> FormatError:
    return FormatError(
        "file.compressed",
        f"{where}: the zstd frame at byte {offset} cannot be decompressed: {why}",
        offset=offset,
        hint="get the file again; what lies before the damage can be read with `zstd -dc`",
        path=where,
    )


def read_path(system: Os, path: str, *, limit: int | None = None) -> bytes:
    """The uncompressed bytes of the file; `OSError`, `StoreFailed` (too large), `FormatError` (damaged frames)."""
    most = limit_of(limit)
    size = system.stat(path).st_size
    if size > most:
        raise _too_large(path, f"{size:,} bytes", most)
    data = read_span(system, path)
    return decompress(data, limit=limit, where=path) if is_compressed(data) else data


def read_file(path: str | os.PathLike[str], *, limit: int | None = None, system: Os = REAL) -> bytes:
    """The lines of a trace file, compressed or not (told by its first bytes, not its name).

    ``limit``: the most uncompressed bytes. Raises `RunNotFound` where there is no such file, `StoreFailed` where it
    cannot be read or is too large, `FormatError` where compressed frames are damaged.
    """
    name = os.fspath(path)
    try:
        return read_path(system, name, limit=limit)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunNotFound(f"there is no trace file {name}", hint="check the path", path=name) from error
    except OSError as error:
        raise failed("read", name, error) from error


def write_file(path: str | os.PathLike[str], data: bytes, *, system: Os = REAL) -> None:
    """Write a trace to ``path``, compressed when the name ends in ``.zst``; `StoreFailed`.

    Atomic: the file is there whole or as it was before. A new file is readable by its owner only; an old one keeps its
    mode. A symbolic link is followed.
    """
    name: str = os.path.realpath(os.fspath(path))
    body = compress(data) if name.endswith(".zst") else data
    try:
        write_path(system, name, body)
    except OSError as error:
        raise failed("write", os.fspath(path), error) from error


def temporary(path: str) -> str:
    """A name in the folder of ``path`` that no trace has."""
    folder, base = os.path.split(path)
    return os.path.join(folder, f".{base[:100]}.{secrets.token_hex(6)}.tmp")


def write_path(system: Os, path: str, body: bytes, *, fresh: bool = False) -> None:
    """Put ``body`` at ``path`` in one step, durable before it is visible; `OSError`.

    ``fresh``: `FileExistsError` when the path exists; otherwise the old file is replaced and its mode kept.
    """
    hidden = temporary(path)
    mode = None if fresh else _mode(system, path)
    fd = system.open(hidden, FRESH, 0o600)
    try:
        try:
            write_all(system, fd, body)
            system.fsync(fd)
        finally:
            system.close(fd)
        if mode is not None:
            system.chmod(hidden, mode)
        if fresh:
            _link(system, hidden, path)
        else:
            system.replace(hidden, path)
    except BaseException:
        with contextlib.suppress(OSError):
            system.unlink(hidden)
        raise
    if fresh:
        with contextlib.suppress(OSError):  # the file is in place; a second name that stays is swept later
            system.unlink(hidden)


def _link(system: Os, hidden: str, path: str) -> None:
    try:
        system.link(hidden, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # No hard links on this file system: the check and the rename are two steps, the best there is.
        with contextlib.suppress(FileNotFoundError):
            system.stat(path)
            raise FileExistsError(errno.EEXIST, "File exists", path) from error
        system.replace(hidden, path)


def _mode(system: Os, path: str) -> int | None:
    try:
        found = system.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
    return stat.S_IMODE(found.st_mode)
