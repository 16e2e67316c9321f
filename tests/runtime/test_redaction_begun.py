"""What, at the end of a text, may be the beginning of a secret."""

from __future__ import annotations

import pytest

from agentloom.runtime.redaction_begun import beginning


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("here: sk-proj-abc", 6),
        ("here: sk-proj-abc and", None),
        ("desk-proj-abc", None),
        ("see postgres://app:pw", 19),
        ("see postgres://app:", None),
        ("see http://host:80", None),
        ("see -----BEGIN PRIVATE KEY-----\nMIIE", 4),
        ("see -----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY---", 4),
        ("see -----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n", None),
        ("see eyJhbGciOi.eyJ", 4),
        ("sk-one sk-two", 7),
        ("", None),
    ],
)
def test_known_shapes(text: str, at: int | None) -> None:
    assert beginning(text.encode(), ()) == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("my hunter-8237", 3),
        ("my hunt", 3),
        ("my hun", None),
        ("my hunter-8237429", 3),
        ("my hunter-8238", None),
        ("hunthunt", 4),
    ],
)
def test_values(text: str, at: int | None) -> None:
    """From four characters on: a shorter one is the beginning of many words."""
    assert beginning(text.encode(), (b"hunter-8237429", b"other-8237429")) == at
