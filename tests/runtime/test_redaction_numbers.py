"""Numbers of secrets: by first appearance, the same for the same secret in each of its escapes, and on replay as the
trace has them."""

from __future__ import annotations

import pytest

from agentloom.runtime.redaction_find import Finder
from agentloom.runtime.redaction_found import BEGINNING, UNSEARCHED, Known
from agentloom.runtime.redaction_numbers import LEARNED, Numbers, is_telling
from agentloom.runtime.redaction_secrets import Secret

KEY = Known("key")


def _numbers(finder: Finder | None = None, **given: str) -> Numbers:
    secrets = {
        int(number[1:]): Secret(int(number[1:]), "environment", name) for number, name in given.items()
    }
    values = {b"value-8237429": Known("environment", "ACME_KEY")}
    return Numbers(finder or Finder({}), secrets, values)


def test_by_first_appearance() -> None:
    numbers = _numbers()
    numbers.place = "call 3"
    assert numbers.replace(b"first-8237429", KEY) == b"__redacted_1__"
    assert numbers.replace(b"second-8237429", KEY) == b"__redacted_2__"
    assert numbers.replace(b"first-8237429", KEY) == b"__redacted_1__"
    before = numbers.fresh
    assert numbers.untold() == [
        {"n": 1, "kind": "key", "place": "call 3"},
        {"n": 2, "kind": "key", "place": "call 3"},
    ]
    assert (before, numbers.fresh) == (True, False)
    assert numbers.untold() == []


@pytest.mark.parametrize(
    ("plain", "coded"),
    [
        (b"a/b-8237429", rb"a\/b-8237429"),
        (b"a b-8237429", b"a%20b-8237429"),
        (b"a\nb-8237429", rb"a\nb-8237429"),
        (b"a\nb-8237429", rb"a\\nb-8237429"),
        (b"ab-8237429", b"a\0b\0-\x008\x002\x003\x007\x004\x002\x009"),
        (b"-----BEGIN X-----\nab\ncd\n-----END X-----", b"-----BEGIN X-----ab cd-----END X-----"),
    ],
)
def test_one_secret_in_each_of_its_escapes(plain: bytes, coded: bytes) -> None:
    numbers = _numbers()
    assert numbers.replace(plain, KEY) == numbers.replace(coded, KEY)


def test_the_trace_s_number_of_a_variable_is_this_machine_s() -> None:
    numbers = _numbers(n7="ACME_KEY")
    assert numbers.replace(b"value-8237429", KEY) == b"__redacted_7__"
    assert numbers.replace(b"other-8237429", KEY) == b"__redacted_8__"


def test_a_number_that_the_run_s_own_data_has_is_left_out() -> None:
    finder = Finder({})
    finder.changes(b"__redacted_1__ and __redacted_3__", lambda secret, known: b"")
    numbers = _numbers(finder)
    assert [numbers.replace(b"secret-%d" % number, KEY) for number in (11111, 22222)] == [
        b"__redacted_2__",
        b"__redacted_4__",
    ]


def test_what_was_met_is_looked_for_but_not_without_end_and_not_what_only_began() -> None:
    finder = Finder({})
    numbers = _numbers(finder)
    numbers.replace(b"beginning-1", Known(BEGINNING))
    numbers.replace(b"f" * 64, UNSEARCHED)
    assert finder.learned == 0
    for number in range(2 * LEARNED):
        numbers.replace(b"secret-%07d" % number, KEY)
    assert finder.learned < LEARNED
    assert finder.knows(b"secret-0000001")


def test_a_beginning_that_goes_on_keeps_its_number() -> None:
    numbers = _numbers()
    assert numbers.replace(b"sk-proj-a1", Known(BEGINNING)) == b"__redacted_1__"
    numbers.goes_on(b"sk-proj-a1")
    assert numbers.replace(b"sk-proj-a1b2c3d4", KEY) == b"__redacted_1__"
    numbers.begun_no_more()
    assert numbers.replace(b"sk-proj-a1zzzzzz", KEY) == b"__redacted_2__"


def test_what_led_to_a_secret_stands_before_it_from_then_on() -> None:
    numbers = _numbers()
    numbers.replace(b"sk-proj-a1b2c3d4", KEY)
    numbers.led(b"sk-proj-a1b2c3d4", b"sk")
    assert numbers.replace(b"sk-proj-a1b2c3d4", KEY) == b"sk__redacted_1__"


def test_payloads_that_differ_in_numbers_alone_agree() -> None:
    numbers = _numbers()
    first = numbers.replace(b"first-8237429", KEY).decode()
    assert numbers.agree({"a": "__redacted_5__", "b": "__redacted_5__"}, {"a": first, "b": first})
    assert numbers.replace(b"first-8237429", KEY) == b"__redacted_5__"
    assert not numbers.agree({"a": "x"}, {"a": "x"})
    assert not numbers.agree({"a": "__redacted_1__"}, {"a": "__redacted_1__ more"})
    assert not numbers.agree(["__redacted_1__", "__redacted_1__"], ["__redacted_2__", "__redacted_3__"])
    assert not numbers.agree(["__redacted_1__", "__redacted_2__"], ["__redacted_3__", "__redacted_3__"])


@pytest.mark.parametrize(
    ("value", "telling"),
    [
        (b"short-1", False),
        (b"hunter-22", True),
        (b"hunterhunter", False),
        (b"correct-horse-battery-staple", True),
        (b"__redacted_1__-8237429", False),
        (b"changeme", False),
    ],
)
def test_what_may_be_looked_for_everywhere(value: bytes, telling: bool) -> None:
    assert is_telling(value) is telling
