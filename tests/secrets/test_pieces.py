"""A secret that is spelt in pieces is hidden as the joined text would be, in every shape of tokens and chunks."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agentloom.format.echoes import text_of
from agentloom.format.values import decode, encode
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_streams import Joined
from tests.secrets.shapes import SHAPES, core, make, unfolded
from tests.secrets.tokens import ITEMS, SHAPES_IN_PIECES, STREAMS, splits

SEED = 20261128


def _whole(shape: str) -> str:
    return f"here: {make(shape, random.Random(f'{SEED} {shape}'))} done"


def _spelt(written: Any, secret: str) -> bool:
    """Whether more than half of a secret can be read from what is written, its separators left out."""
    text = "".join(one for one in json.dumps(written) if one.isalnum() or one in "-+/_.")
    return any(secret[at : at + len(secret) // 2] in text for at in range(len(secret) // 2))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("made", SHAPES_IN_PIECES, ids=lambda made: made.__name__)
def test_pieces_in_one_payload(made: Any, shape: str) -> None:
    print(f"seed {SEED}")
    whole = _whole(shape)
    secret = core(shape, whole[6:-5])
    for pieces in splits(whole, step=5 if len(whole) > 100 else 2):
        given, read = made(pieces)
        redactor = Redactor()
        tree = encode(given)
        assert redactor.suspects(text_of(tree)), pieces
        written = redactor.tree(tree)
        got = read(decode(written, None))
        assert got == redactor.text(whole), pieces
        assert secret not in got
        assert redactor.tree(written) is written
        if len(pieces) > 2:
            assert not _spelt(written, secret), pieces


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("made", ITEMS, ids=lambda made: made.__name__)
def test_pieces_in_items_that_may_be_a_text_each(made: Any, shape: str) -> None:
    """Where the first piece could be all of it, what follows is one of its own."""
    whole = _whole(shape)
    secret = core(shape, whole[6:-5])
    for pieces in splits(whole, step=5 if len(whole) > 100 else 2):
        given, read = made(pieces)
        redactor = Redactor()
        got = read(decode(redactor.tree(encode(given)), None))
        assert secret not in got
        assert secret[len(secret) // 2 :] not in got, pieces
        assert secret[: len(secret) // 2] not in got, pieces


def test_a_list_of_keys_stays_a_list_of_keys() -> None:
    rng = random.Random(SEED)
    keys = [make("openai", rng), make("openai", rng), "Thanks", make("aws", rng)]
    redactor = Redactor()
    first, second, third = (redactor.text(keys[index]) for index in (0, 1, 3))
    assert redactor.tree([{"type": "text", "text": key} for key in keys]) == [
        {"type": "text", "text": text} for text in (first, second, "Thanks", third)
    ]
    assert redactor.tree(list(keys)) == [first, second, "Thanks", third]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("made", STREAMS, ids=lambda made: made.__name__)
def test_pieces_in_a_stream(made: Any, shape: str) -> None:
    print(f"seed {SEED}")
    whole = _whole(shape)
    secret = core(shape, whole[6:-5])
    for pieces in splits(whole, step=5 if len(whole) > 100 else 2):
        given, read = made(pieces)
        chunks = [encode(one) for one in given]
        redactor = Redactor()
        got = read([decode(one, None) for one in Joined(redactor).redacted(chunks, final=True)])
        assert got == redactor.text(whole), pieces
        assert secret not in got


@pytest.mark.parametrize("made", STREAMS, ids=lambda made: made.__name__)
def test_pieces_in_a_stream_that_is_written_in_two(made: Any) -> None:
    """What may be the beginning of a secret at the end of the first half is hidden as well."""
    rng = random.Random(SEED)
    secret = make("openai", rng)
    whole = f"here: {secret} done"
    for pieces in splits(whole, step=3):
        given, read = made(pieces)
        chunks = [encode(one) for one in given]
        for middle in {1, len(chunks) // 2, len(chunks) - 1}:
            joined = Joined(Redactor())
            written = joined.redacted(chunks[:middle], final=False) + joined.redacted(
                chunks[middle:], final=True
            )
            got = read([decode(one, None) for one in written])
            assert secret[10:] not in got
            assert not any(secret[8:].encode() in data for data in unfolded(json.dumps(written).encode()))


def test_lists_without_a_secret_are_the_very_same() -> None:
    for made in SHAPES_IN_PIECES:
        tree = encode(made(["he", "llo", " wor", "ld", " sk-", "learn"])[0])
        assert Redactor().tree(tree) is tree
    for made in STREAMS:
        chunks = [encode(one) for one in made(["he", "llo", " wor", "ld"])[0]]
        assert Joined(Redactor()).redacted(chunks, final=True) is chunks


def test_messages_are_texts_of_their_own() -> None:
    key = make("openai", random.Random(SEED))
    redactor = Redactor()
    tree = encode(
        [{"role": "user", "content": f"is {key[:20]}"}, {"role": "user", "content": f"{key[20:]} next"}]
    )
    assert redactor.tree(tree) is tree
    both = encode([{"role": "user", "content": f"is {key}"}, {"role": "user", "content": "Thanks"}])
    assert redactor.tree(both) == [
        {"role": "user", "content": "is __redacted_1__"},
        {"role": "user", "content": "Thanks"},
    ]
