"""Every kind of value in a payload, with and without a secret in it."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
import uuid
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest

from agentloom import secrets
from agentloom.format.values import decode, encode
from agentloom.runtime.redaction import Redactor
from tests.secrets.shapes import make

KEY = make("aws", random.Random(4))
MARK = "__redacted_1__"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (KEY, MARK),
        ([1, KEY], [1, MARK]),
        ({KEY: {"a": KEY}}, {MARK: {"a": MARK}}),
        ((1, KEY), (1, MARK)),
        ({KEY}, {MARK}),
        (frozenset((KEY,)), frozenset((MARK,))),
        ({1: KEY, (KEY,): 2}, {1: MARK, (MARK,): 2}),
        (KEY.encode(), MARK.encode()),
        (bytearray(KEY.encode()), bytearray(MARK.encode())),
        (PurePosixPath("/a") / KEY, PurePosixPath("/a") / MARK),
        (f"\ud800 {KEY}", f"\ud800 {MARK}"),
        ({"password": "hunter-22"}, {"password": MARK}),
        ({"password": 82374290}, {"password": MARK}),
        (
            {"headers": [["authorization", "Bearer abc-12345"]]},
            {"headers": [["authorization", f"Bearer {MARK}"]]},
        ),
        (json.dumps({"password": "hunter-22"}), json.dumps({"password": MARK})),
    ],
)
def test_a_secret_in_every_kind_of_value(value: Any, written: Any) -> None:
    got = decode(Redactor().tree(encode(value)), None)
    assert got == decode(encode(written), None)
    assert type(got) is type(decode(encode(written), None))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 5, 2.5, float("nan"), 10**30, "text", b"bytes", dt.date(2026, 1, 1), uuid.UUID(int=7),
        Decimal("1.5"), {"max_tokens": 5}, {"password": ""}, {"password": None}, {"token": "abc"}, [["a", "b"]],
        {"$ref": "x"}, {1: 2},
    ],
)  # fmt: skip
def test_a_value_without_one_is_the_very_same(value: Any) -> None:
    tree = encode(value)
    assert Redactor().tree(tree) is tree


def test_a_value_that_is_no_text_gives_way_as_a_whole() -> None:
    ident = uuid.UUID(int=82374290)
    redactor = Redactor(secrets(values=[str(ident), "12345678.25", "2026-01-02"]))
    for value in (ident, Decimal("12345678.25"), dt.date(2026, 1, 2)):
        assert str(redactor.tree(encode(value))).startswith("__redacted_")


def test_an_error_with_its_cause() -> None:
    cause = KeyError(f"inner {KEY}")
    error = ValueError(f"outer {KEY}", {"given": KEY})
    error.add_note(f"tried {KEY}")
    error.__cause__ = cause
    tree = encode(error)
    text = json.dumps(Redactor().tree(tree))
    assert KEY in json.dumps(tree)
    assert KEY not in text
    assert "builtins:ValueError" in text or "ValueError" in text


def test_keys_that_become_one_stay_two() -> None:
    made = Redactor().tree({KEY: 1, MARK: 2})
    assert isinstance(made, dict)
    assert sorted(made.values()) == [1, 2]  # type: ignore[type-var]


def test_what_looks_like_a_tag_afterwards_is_none() -> None:
    redactor = Redactor(secrets(values=["key-8237429x"]))
    assert redactor.tree({"key-8237429x": 1}) == {MARK: 1}
    tree = encode({"$key-8237429x": 1})
    assert decode(redactor.tree(tree), None) == {f"${MARK}": 1}


def test_paths_of_a_user_in_json_in_texts() -> None:
    redactor = Redactor(secrets(paths=["card.number"]))
    inner = json.dumps({"card": {"number": "4111"}})
    tree = {"arguments": inner, "coded": base64.b64encode(inner.encode()).decode()}
    made: Any = redactor.tree(tree)  # type: ignore[arg-type]
    assert json.loads(made["arguments"]) == {"card": {"number": MARK}}
