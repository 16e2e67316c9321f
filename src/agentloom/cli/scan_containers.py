"""What is in a file: the file itself, or what it folds: zstd, gzip, the members of a zip archive. Read in pieces."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import zstandard

from agentloom.errors import NotSupported

__all__ = ["PIECE", "files_of", "members_of"]

PIECE = 1 << 20
"""Bytes that are read at once."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b\x08"
_ZIP = b"PK\x03\x04"
_FOLDED = 4096  # bytes that are unfolded at once: to 128 MiB at most
_LEVELS = 3  # containers in containers
_FREE = 1 << 30
_RATIO = 200


def files_of(folder: str) -> Iterator[str]:
    """Every regular file of a folder, in order. Links to folders are not followed."""
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            if os.path.isfile(path):
                yield path


def members_of(path: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The contents of a file: the name of each and its bytes in pieces. ``OSError`` where it cannot be read,
    ``NotSupported`` where it unfolds to more than 1 GiB and 200 times its size."""
    with open(path, "rb") as file:
        budget = _Budget(_FREE + _RATIO * os.fstat(file.fileno()).st_size, path)
        yield from _unfolded(path, file, budget, _LEVELS)


class _Budget:
    def __init__(self, left: int, path: str) -> None:
        self.left = left
        self.path = path

    def take(self, piece: bytes) -> bytes:
        self.left -= len(piece)
        if self.left < 0:
            raise NotSupported(
                f"{self.path} unfolds to far more than its size", hint="unpack it, and scan what it holds"
            )
        return piece


def _unfolded(
    name: str, source: IO[bytes], budget: _Budget, levels: int
) -> Iterator[tuple[str, Iterator[bytes]]]:
    start = source.read(4)
    source.seek(0)
    if levels and start.startswith(_ZIP):
        yield from _members(name, source, budget, levels - 1)
    elif levels and start.startswith(_ZSTD):
        yield name, _frames(source, budget)
    elif levels and start.startswith(_GZIP):
        yield name, _pieces(gzip.GzipFile(fileobj=source), budget)
    else:
        yield name, _pieces(source, budget)


def _members(
    name: str, source: IO[bytes], budget: _Budget, levels: int
) -> Iterator[tuple[str, Iterator[bytes]]]:
    with _readable(name), zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            inner = f"{name}!{member.filename}"
            with archive.open(member) as file:
                start = file.read(4)
                if levels and start.startswith(_ZIP):  # which must be sought in
                    whole = b"".join((start, *_pieces(file, budget)))
                    yield from _members(inner, io.BytesIO(whole), budget, levels - 1)
                else:
                    yield inner, _pieces(file, budget, start)


def _frames(source: IO[bytes], budget: _Budget) -> Iterator[bytes]:
    """The content of zstd frames. Their reader is silent where the last one is cut off."""
    with _readable(budget.path):
        frame, held = zstandard.ZstdDecompressor().decompressobj(), b""
        begun = False
        while data := source.read(_FOLDED):
            while data:
                begun = True
                held += budget.take(frame.decompress(data))
                data = frame.unused_data
                if frame.eof:
                    frame, begun = zstandard.ZstdDecompressor().decompressobj(), False
                else:
                    break
            if len(held) >= PIECE:
                yield held
                held = b""
        yield held
        if begun:
            raise EOFError("its last frame is cut off")


def _pieces(source: Any, budget: _Budget, start: bytes = b"") -> Iterator[bytes]:
    with _readable(budget.path):
        if start:
            yield budget.take(start + source.read(PIECE - len(start)))
        while piece := source.read(PIECE):
            yield budget.take(cast(bytes, piece))


@contextmanager
def _readable(name: str) -> Generator[None]:
    """What libraries raise for damaged data becomes one ``OSError``."""
    try:
        yield
    except (
        EOFError,
        zlib.error,
        zipfile.BadZipFile,
        zstandard.ZstdError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise OSError(f"{name} cannot be unfolded to its end: {error}") from error
