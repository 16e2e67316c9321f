"""What one automaton looks for."""

from __future__ import annotations

import base64
import json

import pytest

from agentloom import secrets
from agentloom.runtime import redaction_plan
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_formats import CONTEXTS, FORMATS, Format
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_plan import CODED, FIELD, LETTER, WIDE, Coded, Near, Plan, plan
from agentloom.runtime.redaction_spellings import HEAD, Spellings

KNOWN = Known("declared value")


def _meaning(made: Plan, text: bytes) -> list[object]:
    found: list[object] = []
    for index, start, _ in made.automaton.find_matches_as_indexes(text, True):
        what = made.meaning[index]
        if isinstance(what, Spellings):
            one = what.at(text, start)
            found += [] if one is None else [one.known]
        else:
            found += what if isinstance(what, list) else [what]
    return found


def test_every_beginning_of_a_shape_and_every_telling_name_is_found() -> None:
    made = plan((), (), whole=True)
    for shape in FORMATS:
        for start in shape.starts:
            assert shape in _meaning(made, start)
    for context in CONTEXTS:
        for start, length in context.starts:
            assert Near(context, length) in _meaning(made, start)


def test_a_value_is_found_in_every_coding() -> None:
    value = b'p\xc3\xa4ss/"8237429'
    made = plan(((value, KNOWN),), (), whole=False)
    assert _meaning(made, value) == [KNOWN]
    for text in (
        b'p\xc3\xa4ss/\\"8237429',
        b'p\\u00e4ss/\\"8237429',
        b"p%C3%A4ss%2F%228237429",
        b"p%C3%A4ss/%228237429",
    ):
        assert [one for one in _meaning(made, text) if one is not LETTER] == [KNOWN]
    assert CODED in _meaning(made, value.hex().encode())
    assert CODED in _meaning(made, value.hex().upper().encode())
    assert WIDE in _meaning(made, b"\\x00".join(bytes([byte]) for byte in value).replace(b"\\x00", b"\x00"))
    assert made.longest >= len(value)


@pytest.mark.parametrize("before", range(3))
def test_a_value_is_found_in_base64_wherever_it_begins(before: int) -> None:
    value = b"hunter-8237429"
    made = plan(((value, KNOWN),), (), whole=False)
    coded = base64.b64encode(b"x" * before + value + b"y" * 5)
    found = [one for one in _meaning(made, coded) if isinstance(one, Coded)]
    assert len(found) == 1


def test_names_of_fields_and_nothing_else() -> None:
    made = plan((), (b"ssn",), whole=False)
    assert _meaning(made, b'{"ssn":1,"ssns":2}') == [FIELD]
    assert not any(isinstance(one, Format) for one in made.meaning)


def test_the_same_plan_is_made_once() -> None:
    assert plan((), (), whole=True) is plan((), (), whole=True)


def test_a_value_with_letters_beyond_ascii_in_json_within_json() -> None:
    value = "p\u00e2ss-\U0001f600-8237429"
    redactor = Redactor(secrets(values=[value]))
    text, whole = value, "__redacted_1__"
    for _ in range(3):
        text, whole = json.dumps({"p": text}), json.dumps({"p": whole})
        assert redactor.tree({"m": text}) == {"m": whole}


@pytest.mark.parametrize("value", [b"a" * 3000, b"[" * 3000, b"ab" * 1500, b"x9" + b"-_" * 1500 + b"end"])
@pytest.mark.parametrize("whole", [True, False])
def test_what_is_looked_for_does_not_grow_with_a_value(value: bytes, whole: bool) -> None:
    """An automaton is made of so many patterns of such a length. One of a whole value that repeats itself takes time,
    one of any long value many megabytes."""
    without = plan((), (), whole=whole)
    made = plan(((value, KNOWN),), (), whole=whole)
    assert made.longest == HEAD
    assert len(made.meaning) - len(without.meaning) <= 24
    assert _meaning(made, b"so: " + value).count(KNOWN) == 1
    assert _meaning(made, value.hex().encode()).count(CODED) >= 1
    assert KNOWN not in _meaning(made, value[1:])


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_found_does_not_depend_on_what_the_automaton_is_made_of(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = tuple(
        (value, Known("declared value", value[:2].decode())) for value in (b"ab" * 100, b'["' * 100)
    )
    made = plan(values, (), whole=whole)
    monkeypatch.setattr(redaction_plan, "_LARGE", 0)
    other = plan.__wrapped__(values, (), whole=whole)
    assert other.meaning == made.meaning
    text = b"sk-proj-abc password=" + b"".join(
        value * 2
        + json.dumps(value.decode()).encode()
        + base64.b64encode(b"-" + value)
        + value.hex().encode()
        for value, _ in values
    )
    found = made.automaton.find_matches_as_indexes(text, True)
    assert found == other.automaton.find_matches_as_indexes(text, True)
    assert len(found) > 8


@pytest.mark.parametrize("value", [b"p\xc3\xa4ss", b"caf\xc3\xa9-\xd0\xb6"])
def test_the_number_of_a_letter_beyond_ascii_is_looked_for(value: bytes) -> None:
    made = plan(((value, KNOWN),), (), whole=False)
    letter = next(one for one in value.decode() if not one.isascii())
    assert LETTER in _meaning(made, f"\\\\\\\\u{ord(letter):04x}".encode())
    assert LETTER in _meaning(made, f"\\\\\\\\u{ord(letter):04X}".encode())
