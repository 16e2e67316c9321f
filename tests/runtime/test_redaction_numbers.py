"""Numbers of secrets on replay: by what the trace says, each for one secret everywhere."""

from __future__ import annotations

import hashlib

import pytest

from agentloom.format.canonical import Tree
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_secrets import Secret

ONE, TWO, THREE = ("gh" + f"p_{hashlib.sha256(name).hexdigest()[:36]}" for name in (b"one", b"two", b"three"))


def of(*numbers: int) -> list[Tree]:
    return [f"__redacted_{number}__" for number in numbers]


def replaying() -> Redactor:
    """Of a trace with two secrets; one, two and three are new here, and numbered after them: 3, 4, 5."""
    redactor = Redactor(given={number: Secret(number, "token", None, None) for number in (1, 2)})
    assert redactor.tree([ONE, TWO, THREE]) == of(3, 4, 5)
    return redactor


def test_a_new_secret_has_from_then_on_the_number_that_the_trace_has_where_it_stands() -> None:
    redactor = replaying()
    assert redactor.agree(["a", *of(2, 2)], ["a", *of(4, 4)])
    assert redactor.tree({"x": [TWO, ONE, "a " + TWO]}) == {
        "x": ["__redacted_2__", "__redacted_3__", "a __redacted_2__"]
    }
    assert redactor.agree(of(2, 1), of(4, 3))  # as it was written before the numbers were known
    assert redactor.agree(of(2, 1), of(2, 1))
    assert redactor.tree([ONE, TWO, THREE]) == of(1, 2, 5)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (of(1), of(3, 4)),
        (["a", *of(1)], ["b", *of(3)]),
        (["a"], ["a"]),
        (of(1, 1), of(3, 4)),
        (of(1, 2), of(3, 3)),
        (of(2), of(1)),
        (of(1), of(2)),
    ],
    ids=["fewer", "other text", "no secret", "two for one", "one for two", "a known one", "another known one"],
)  # fmt: skip
def test_payloads_that_are_others_say_nothing_of_numbers(then: list[Tree], now: list[Tree]) -> None:
    redactor = replaying()
    assert not redactor.agree(then, now)
    assert redactor.tree([ONE, TWO, THREE]) == of(3, 4, 5)


def test_a_secret_that_has_its_number_stands_for_no_other() -> None:
    redactor = replaying()
    assert redactor.agree(of(1), of(3))
    assert not redactor.agree(of(2), of(3))
    assert not redactor.agree(of(2), of(1))
    assert not redactor.agree(of(1), of(4))
    assert not redactor.agree(of(2, 1), of(4, 5))  # nor is one of a payload settled where another cannot be
    assert redactor.tree([ONE, TWO, THREE]) == of(1, 4, 5)
