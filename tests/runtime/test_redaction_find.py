"""How much is done for a text that is made of nothing but beginnings: counted in steps, not in time."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest

from agentloom.runtime import redaction_find, redaction_suspect
from agentloom.runtime.redaction_find import Finder
from agentloom.runtime.redaction_formats import LEAST_KEY
from agentloom.runtime.redaction_found import Change, Known
from agentloom.runtime.redaction_look import Work
from agentloom.runtime.redaction_shapes import seen

KNOWN = Known("declared value")
PIECES = [
    "sk-", " sk-abc", "eyJ", "eyJ.", "AKIA", "xoxb-a ", "-----BEGIN PRIVATE KEY-----", "password=", '"password": "',
    "://", "://a:", "%3A%2F%2F", "%3A%2F%2Fa%3A", "c2st", "QUtJQ", "H4sI", "\\u002d", "\\x2d ", "Bearer ", "&key=",
]  # fmt: skip
SIZE = 200_000


def _replaced(data: bytes, finder: Finder) -> bytes:
    return finder.applied(data, lambda secret, known: b"<" + known.kind.encode() + b">")


def _coded() -> bytes:
    return b"x " + base64.b64encode(b"afterwards-11223344")


def test_places_of_values() -> None:
    finder = Finder({b"hunter-8237429": KNOWN})
    assert finder.knows(b"hunter-8237429")
    data = b"it is hunter-8237429."
    changes = finder.changes(data, lambda secret, known: b"X")
    assert changes == [Change(6, 20, b"X", (KNOWN,))]
    assert _replaced(data, finder) == b"it is <declared value>."
    assert finder.applied(b"nothing", lambda secret, known: b"X") == b"nothing"


def test_what_is_learned_is_found_from_then_on() -> None:
    finder = Finder({})
    before = finder.quick
    finder.learn({b"afterwards-11223344": KNOWN})
    assert (before, finder.quick) == (True, False)
    assert finder.known(b"afterwards-11223344") == KNOWN
    assert finder.suspects(b"x afterwards-11223344")
    assert _replaced(_coded(), finder) != _coded()


@pytest.mark.parametrize("piece", PIECES)
def test_steps_for_beginnings(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what begins at each place one pattern is tried at most twice (a first and a close look), decoded is no more
    than the bound; and no place in a run that is too long for a key is tried at all, but at its end."""
    data = piece.encode() * (SIZE // len(piece))
    tried: list[int] = []
    decoded: list[int] = []
    take = Work.take

    def counted(text: bytes, one: Any, start: int) -> Any:
        if text is data:
            tried.append(start)
        return seen(text, one, start)

    def noted(work: Work, size: int) -> bool:
        going = take(work, size)
        decoded.append(size if going else 0)
        return going

    monkeypatch.setattr(redaction_suspect, "seen", counted)
    monkeypatch.setattr(redaction_find, "seen", counted)
    monkeypatch.setattr(Work, "take", noted)
    finder = Finder({})
    finder.suspects(data)
    assert len(tried) <= 2 * len(data) // len(piece) + 2
    if re.fullmatch("[A-Za-z0-9_-]+", piece) and piece != "eyJ":
        assert len(tried) <= 512 // len(piece) + 1
    assert sum(decoded) <= 16 * len(data) + (4 << 20)
    tried.clear()
    decoded.clear()
    _replaced(data, finder)
    assert len(tried) <= 2 * len(data) // len(piece) + 2
    assert sum(decoded) <= 16 * len(data) + (4 << 20)


def test_a_key_at_the_end_of_a_long_run_is_found_all_the_same() -> None:
    finder = Finder({})
    key = b"sk-ant-" + b"a1B2" * 10
    for before in (b"x" * 3000 + b" ", b"sk-" * 1000 + b" ", b"AKIA" * 1000 + b"."):
        assert finder.suspects(before + key)
        assert key not in _replaced(before + key, finder)
    assert not finder.suspects(b"sk-" + b"a" * (LEAST_KEY - 4))
