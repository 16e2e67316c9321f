"""The spellings of a known value: which there are, and that each is told at its place."""

from __future__ import annotations

import html
import json
import random
import urllib.parse

import pytest

from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_spellings import HEAD, Spelling, Spellings, cores, foreign_letters, spelt

SEED = 20261128
KNOWN = Known("declared value")
LETTERS = "ab9 &<>\"'\\=+%-_/\n\u00e9\u0436\U0001f600"


def texts(value: str) -> list[bytes]:
    return [one.text for one in spelt(value.encode(), KNOWN)]


def test_a_value_itself_is_the_first() -> None:
    first = next(iter(spelt(b"k9-plain", KNOWN)))
    assert (first.text, first.value, first.known, first.write(b"x")) == (
        b"k9-plain",
        b"k9-plain",
        KNOWN,
        b"x",
    )


def test_a_plain_key_has_no_others_but_letters_of_another_case() -> None:
    assert set(texts("k9-plain-827364XY")) == {
        b"k9-plain-827364XY",
        b"k9-plain-827364xy",
        b"K9-PLAIN-827364XY",
    }
    assert set(texts("k9-plain")) == {b"k9-plain"}
    assert set(texts("correct-horse-battery")) == {b"correct-horse-battery"}


@pytest.mark.parametrize("number", range(40))
def test_what_the_standard_library_makes_of_a_text(number: int) -> None:
    rng = random.Random(f"{SEED} {number}")
    value = "".join(rng.choice(LETTERS) for _ in range(rng.randrange(8, 40)))
    print(f"seed {SEED} {number}: {value!r}")
    known = set(texts(value))
    dumped = json.dumps(value)
    for form in (
        html.escape(value),
        urllib.parse.quote(urllib.parse.quote_plus(value), safe=""),
        dumped[1:-1],
        json.dumps(dumped[1:-1])[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(html.escape(value))[1:-1],
        repr(value)[1:-1],
        repr(value.encode())[2:-1],
    ):
        assert form.encode() in known, form


def test_bytes_that_are_no_text() -> None:
    value = b"\xff\xfe-k9-82374"
    known = {one.text for one in spelt(value, KNOWN)}
    assert {value, b"%FF%FE-k9-82374", b"\\xff\\xfe-k9-82374"} <= known


def test_of_those_that_begin_alike_the_longest_that_stands_there() -> None:
    found = Spellings([Spelling(text, text, KNOWN) for text in (b"abcd", b"abc", b"ab")])
    assert [found.at(data, 1) and found.at(data, 1).text for data in (b"-abcde", b"-abce", b"-abx", b"-axx")] == [  # type: ignore[union-attr]
        b"abcd", b"abc", b"ab", None,
    ]  # fmt: skip


def test_the_first_letter_that_may_be_escaped() -> None:
    assert list(foreign_letters("p\u00e4\u0436".encode())) == [b"u00e4", b"u00E4"]
    assert list(foreign_letters("\U0001f600".encode())) == [b"ud83d", b"uD83D"]
    assert list(foreign_letters(b"plain")) == []


def test_base64_wherever_a_value_begins() -> None:
    assert all(len(core) >= 8 for core, _ in cores(b"k9-plain"))
    assert cores(b"ab") == []
    assert HEAD >= 2 * 20
