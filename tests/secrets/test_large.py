"""Secrets in large payloads: found in every coding and wherever they stand, while what only looks like the beginning
of one costs a bounded amount of decoding."""

from __future__ import annotations

import base64
import gzip
import json
import random
import urllib.parse
import zlib
from collections.abc import Callable

import pytest

from agentloom.format.blobs import Suspect
from agentloom.format.placeholders import START
from agentloom.runtime import redaction_find
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_look import Work
from tests.secrets.shapes import SHAPES, core, make

SEED = 20261128
SIZE = 120_000


def _codings(secret: str) -> dict[str, bytes]:
    plain = secret.encode()
    found = {
        "plain": plain,
        "hex": plain.hex().encode(),
        "HEX": plain.hex().upper().encode(),
        "UTF-16": secret.encode("utf-16-le"),
        "JSON": json.dumps({"k": f"x {secret}"}).encode(),
        "JSON in JSON": json.dumps(json.dumps({"k": f"x {secret}"})).encode(),
        "escapes": "".join(f"\\u{ord(char):04x}" for char in secret).encode(),
        "gzip": base64.b64encode(gzip.compress(b"it is " + plain)),
        "zlib": base64.b64encode(zlib.compress(b"it is " + plain)),
    }
    for before in range(3):
        found[f"base64 {before}"] = base64.b64encode(b"?" * before + plain)
        found[f"base64url {before}"] = base64.urlsafe_b64encode(b"\xff" * before + plain)
    if ":" not in secret and " " not in secret:
        found["percent"] = urllib.parse.quote(f"{secret} ", safe="").encode()
    return found


def _fillers(rng: random.Random) -> dict[str, bytes]:
    noise = rng.randbytes(SIZE)
    rows = [{"id": n, "text": 'He said "hi"\n', "url": f"https://example.com/{n}"} for n in range(SIZE // 70)]
    return {
        "random bytes": noise,
        "base64 in lines": base64.encodebytes(noise),
        "JSON": json.dumps(rows).encode(),
        "one letter": b"a" * SIZE,
        "near misses": b" sk-abc eyJabc. c2stAAAA \\x1b" * (SIZE // 28),
    }


def _suspect(redactor: Redactor, data: bytes) -> bool:
    try:
        redactor.gate(data)
    except Suspect:
        return True
    return False


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_a_large_payload_is_found_in_every_coding(shape: str) -> None:
    print(f"seed {SEED}")
    rng = random.Random(f"{SEED} {shape}")
    for filler, text in _fillers(rng).items():
        secret = make(shape, rng)
        for coding, coded in _codings(secret).items():
            if shape == "url" and coding not in ("plain", "JSON", "JSON in JSON"):
                continue  # its beginning is too short to be looked for in a coding
            at = rng.randrange(1000, len(text) - 1000)
            data = text[:at] + b" " + coded + b" " + text[at:]
            redactor = Redactor()
            assert _suspect(redactor, data), (filler, coding)
            changed = redactor.bytes_of(data)
            assert coded[8:-8] not in changed, (filler, coding)
            if coding in ("plain", "JSON"):
                assert core(shape, secret).encode() not in changed
                assert changed.count(START.encode()) == 1, (filler, coding)
            assert changed.startswith(text[: at - 100])
            assert changed.endswith(text[at + 100 :])


@pytest.mark.parametrize("folded", [gzip.compress, zlib.compress])
def test_a_secret_in_a_large_gzip_member_is_found(folded: Callable[[bytes], bytes]) -> None:
    rng = random.Random(SEED)
    secret = make("openai", rng).encode()
    data = folded(rng.randbytes(300_000) + b" " + secret + b" " + rng.randbytes(300_000))
    redactor = Redactor()
    assert _suspect(redactor, data)
    assert secret not in zlib.decompress(redactor.bytes_of(data), zlib.MAX_WBITS | 32)


def test_a_secret_over_the_edge_of_two_pieces_is_found() -> None:
    secret = make("aws", random.Random(SEED)).encode()
    edge = redaction_find.PIECE
    for at in range(edge - len(secret) - 1, edge + 2):
        data = b"." * at + secret + b"." * 1000
        assert _suspect(Redactor(), data), at


@pytest.mark.parametrize("data", ["noise", "base64", "tag", "hex"])
def test_binary_payloads_are_hardly_decoded(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")
    noise = random.Random(SEED).randbytes(4_000_000)
    coded = base64.b64encode(noise)
    text = {
        "noise": noise,
        "base64": coded,
        "tag": b'{"$bytes":"' + coded + b'"}',
        "hex": noise.hex().encode(),
    }[data]
    taken: list[int] = []

    def take(work: Work, size: int) -> bool:
        taken.append(size)
        return True

    monkeypatch.setattr(Work, "take", take)
    assert not _suspect(Redactor(), text)
    assert sum(taken) < len(text) * 0.75 + (0 if data == "noise" else 4_000_000)


@pytest.mark.parametrize(
    "piece", ["c2st", "eyJ", "sk-", "\\u0041", "\\x41 ", "s\0k\0-\0p\0", "AKIA", "H4sI", "eJwA"]
)
def test_near_misses_are_decoded_within_the_bound(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = piece.encode() * (500_000 // len(piece))
    left: list[int] = []
    take = Work.take

    def noted(work: Work, size: int) -> bool:
        going = take(work, size)
        left.append(size if going else 0)
        return going

    monkeypatch.setattr(Work, "take", noted)
    redactor = Redactor()
    _suspect(redactor, text)
    assert sum(left) <= 16 * len(text) + (4 << 20)
    left.clear()
    redactor.bytes_of(text)
    assert sum(left) <= 16 * len(text) + (4 << 20)
