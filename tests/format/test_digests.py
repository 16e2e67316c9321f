"""Digests by hand: the prefixes, the lengths, and what each digest depends on."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from agentloom.format.digests import blob_id, entry_digest, request_key


def test_an_entry() -> None:
    line = b'{"seq":0}'
    assert entry_digest(line) == hashlib.sha256(b"agentloom/v1/entry\x00" + line).hexdigest()


def test_a_blob() -> None:
    salt = bytes(range(16))
    assert (
        blob_id(salt, "json", b"[1]")
        == hashlib.sha256(b"agentloom/v1/blob\x00" + salt + b"json\x00[1]").hexdigest()
    )
    assert len({blob_id(salt, form, b"1") for form in ("json", "bytes", "nonce")}) == 3
    assert blob_id(bytes(16), "json", b"1") != blob_id(salt, "json", b"1")


def test_a_key() -> None:
    message = b'agentloom/v1/key/1\x00plain/1\x00{"a":1.0,"b":[]}'
    assert (
        request_key(b"n" * 32, "plain/1", {"b": [], "a": 1.0})
        == hmac.new(b"n" * 32, message, "sha256").hexdigest()[:32]
    )


@pytest.mark.parametrize(
    ("nonce", "profile", "tree"),
    [
        (b"m" * 32, "plain/1", {"a": 1}),
        (b"n" * 32, "plain/2", {"a": 1}),
        (b"n" * 32, "plain/1", {"a": 1.0}),
        (b"n" * 32, "plain/1", {"a": True}),
    ],
)
def test_a_key_depends_on_everything(nonce: bytes, profile: str, tree: Any) -> None:
    assert request_key(nonce, profile, tree) != request_key(b"n" * 32, "plain/1", {"a": 1})
