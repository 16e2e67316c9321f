"""Text hidden in text: what is changed in the decoded text is what coding the changed text gives."""

from __future__ import annotations

import base64
import gzip
import json
import random
import urllib.parse
import zlib

import pytest

from agentloom.runtime.redaction_layers import (
    TooMuch,
    base64_blocks,
    gunzip,
    hex_blocks,
    local_layers,
    recode_gzip,
)

SEED = 31


def _applied(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for start, end, new in reversed(changes):
        data = data[:start] + new + data[end:]
    return data


def _change(data: bytes) -> bytes:
    return data.replace(b"SECRET-VALUE", b"__redacted_1__")


@pytest.mark.parametrize("before", range(5))
@pytest.mark.parametrize("after", range(4))
def test_blocks_of_base64_and_hexadecimal_change_places_with_redacting(before: int, after: int) -> None:
    plain = b"u" * before + b"SECRET-VALUE" + b"v" * after
    for code in (base64.b64encode, base64.urlsafe_b64encode):
        text = b'{"x": "' + code(plain) + b'"}'
        changed = _applied(text, list(base64_blocks(text, {}, _change)))
        assert changed == b'{"x": "' + code(_change(plain)) + b'"}'
    text = b"<" + plain.hex().encode() + b">"
    assert _applied(text, list(hex_blocks(text, _change))) == b"<" + _change(plain).hex().encode() + b">"


def test_a_block_without_a_secret_stays() -> None:
    text = base64.b64encode(b"nothing to see here") + b" " + b"abcdef0123456789" * 3
    assert list(base64_blocks(text, {}, _change)) == []
    assert list(hex_blocks(text, _change)) == []


def test_gzip_and_zlib_are_coded_again() -> None:
    for data in (gzip.compress(b"a SECRET-VALUE b", mtime=0), zlib.compress(b"a SECRET-VALUE b")):
        changed = recode_gzip(data, _change)
        assert gunzip(changed) == b"a __redacted_1__ b"
        assert recode_gzip(changed, _change) is changed
    assert gunzip(b"\x1f\x8bgarbage") is None
    assert gunzip(b"plain") is None
    assert recode_gzip(b"plain", _change) == b"plain"


def test_local_codings_keep_the_place_of_each_byte() -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    for _ in range(200):
        text = "".join(rng.choice('ab-"\\\n\té€% +/') for _ in range(rng.randrange(1, 30)))
        for coded, wanted in (
            (json.dumps(text)[1:-1], text),
            (json.dumps(text, ensure_ascii=False)[1:-1], text),
            (urllib.parse.quote(text, safe=""), text),
        ):
            layers = list(local_layers(coded.encode()))
            if coded == wanted:
                continue
            assert wanted.encode() in [layer.data for layer in layers]
            layer = next(layer for layer in layers if layer.data == wanted.encode())
            places = [layer.span(index, index + 1)[0] for index in range(len(layer.data))]
            assert places == sorted(places)
            assert all(
                coded.encode()[place : place + 1] in (layer.data[index : index + 1], b"\\", b"%")
                for index, place in enumerate(places)
            )
            assert layer.span(0, len(layer.data)) == (0, len(coded.encode()))


def test_wide_text_without_its_nuls() -> None:
    data = "xSECRET".encode("utf-16-le")
    layer = next(iter(local_layers(data)))
    start, end = layer.span(1, 7)
    assert layer.data == b"xSECRET"
    assert data[:start] + layer.code(b"AB") + data[end:] == "xAB".encode("utf-16-le")


def test_nothing_of_folded_data_is_cut_off() -> None:
    """What follows a member stays, further members too; what unfolds to more than is looked into is told."""
    one, two = gzip.compress(b"a SECRET-VALUE", mtime=0), gzip.compress(b"b SECRET-VALUE", mtime=0)
    assert gzip.decompress(recode_gzip(one + two, lambda data: recode_gzip(_change(data), _change))) == (
        b"a __redacted_1__b __redacted_1__"
    )
    assert recode_gzip(one + b"SECRET-VALUE", _change).endswith(b"__redacted_1__")
    plain = gzip.compress(b"plain", mtime=0)
    assert recode_gzip(plain + b"SECRET-VALUE", _change) == plain + b"__redacted_1__"
    assert recode_gzip(plain + b"more", _change) == plain + b"more"
    large = gzip.compress(b"x" * 5000)
    for work in (gunzip, lambda data, most: recode_gzip(data, _change, most)):
        with pytest.raises(TooMuch):
            work(large, 4999)
    assert gunzip(large, 5000) == b"x" * 5000
