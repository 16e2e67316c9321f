"""Damaged files of every container: an error that says so, or exchanges that can be read; never anything else."""

from __future__ import annotations

import gzip
import random
import time
from pathlib import Path

import pytest

from agentloom.errors import TrafficError
from agentloom.testing import Player, read_traffic
from tests.corpus.files import CORPUS, WHY, rows

ROUNDS = 1500
PIECES = [
    b"null", b"[]", b"{}", b"!!python/name:os.system ", b"&a ", b"*a", b": ", b"- ", b"\n", b"'", b'"', b"9" * 30,
    b"!!binary ", b"\xff", b"<<: ", b"http://[", b"\x1f\x8b", b"base64:", b"\\ud83d", b"\0",
]  # fmt: skip


def damaged(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(gzip.decompress(data) if data.startswith(b"\x1f\x8b") and draw.random() < 0.8 else data)
    for _ in range(draw.choice([1, 1, 3, 20])):
        place = draw.randrange(len(made) + 1)
        match draw.randrange(4):
            case 0:
                made[place : place + 1] = bytes([draw.randrange(256)])
            case 1:
                del made[place : place + draw.randrange(1, 60)]
            case 2:
                made[place:place] = draw.choice(PIECES)
            case _:
                start = draw.randrange(len(made) + 1)
                made[place:place] = made[start : start + 50]
    return bytes(made)


@pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
@pytest.mark.parametrize("seed", [1, 2])
def test_damage_is_an_error_or_traffic(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    draw = random.Random(seed)
    files = [CORPUS / row.file for row in rows() if (CORPUS / row.file).stat().st_size < 20_000]
    contents = [file.read_bytes() for file in files]
    path, errors = tmp_path / "damaged", list[str]()
    for _ in range(ROUNDS // 2):
        path.write_bytes(damaged(draw.choice(contents), draw))
        start = time.perf_counter()
        try:
            found = read_traffic(path)
        except TrafficError as error:
            errors.append(error.message)
            continue
        for one in found.exchanges:
            for name in ("content", "content_type", "path", "query", "host", "encoded"):
                getattr(one, name)
            one.request()
        if found.exchanges:
            assert Player(*found.exchanges).exchanges == found.exchanges
        assert time.perf_counter() - start < 10
    assert all("damaged" in error for error in errors)
    assert ROUNDS // 20 < len(errors) < ROUNDS // 2
