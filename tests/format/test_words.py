"""Words for messages."""

from __future__ import annotations

import re
import uuid
from decimal import Decimal
from pathlib import Path

import pytest

import agentloom
from agentloom.format.words import kind_of


class UnionShop:
    """Starts with the sound of a "y"."""


class Umbrella:
    """Does not."""


class Offer:
    """A class."""


class User:
    """Said as "yoo"."""


class Xylophone:
    """Begins with a consonant, of which the name begins with a vowel."""


class umbra:  # noqa: N801 - names of classes may be small
    """Small."""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, "an int"),
        ("", "a str"),
        (None, "None"),
        ([], "a list"),
        (b"", "a bytes"),
        (Offer(), "an Offer"),
        (object(), "an object"),
        (Decimal(1), "a Decimal"),
        (uuid.UUID(int=0), "a UUID"),
        (UnionShop(), "a UnionShop"),
        (Umbrella(), "an Umbrella"),
        (User(), "a User"),
        (Xylophone(), "a Xylophone"),
        (umbra(), "an umbra"),
    ],
)
def test_a_kind_has_its_article(value: object, said: str) -> None:
    assert kind_of(value) == said


def test_no_message_puts_an_article_before_a_name_that_it_does_not_know() -> None:
    guess = re.compile(r"\ba \{(?:type\(\w+\)\.__(?:qual)?name__|kind|what)\}")
    root = Path(agentloom.__file__).parent
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if guess.search(line)
    ]
    assert not found, "\n".join(found)
