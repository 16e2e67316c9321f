"""JSON that can be read in one way only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import AnswerError
from agentloom.runtime.answers import Answer
from agentloom.runtime.plain_json import Ambiguous, read_json

AMBIGUOUS = {
    '{"a": 1, "a": 2}': 'the key "a" is there twice',
    '[{"b": {"a": 1, "c": 2, "a": 1}}]': 'the key "a" is there twice',
    '{"a": 1, "\\u0061": 2}': 'the key "a" is there twice',
    "NaN": "NaN is no value of JSON",
    '{"a": [Infinity]}': "Infinity is no value of JSON",
    "-Infinity": "-Infinity is no value of JSON",
    '{"a": 1e999}': "the number 1e999 is too large",
    "[-1E400]": "the number -1E400 is too large",
}


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_what_readers_differ_about_is_refused(text: str) -> None:
    with pytest.raises(Ambiguous, match=AMBIGUOUS[text]):
        read_json(text)


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_an_answer_and_the_arguments_of_a_call_are_read_so(text: str) -> None:
    with pytest.raises(AnswerError, match="cannot be read in one way") as caught:
        Answer({"content": text}).json()
    assert caught.value.text == text
    call = {"id": "c1", "function": {"name": "f", "arguments": text}}
    with pytest.raises(AnswerError, match=r"tool call c1 \(f\) cannot be read in one way"):
        _ = Answer({"tool_calls": [call]}).tool_calls[0].arguments


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} x', "'a'"])
def test_what_is_no_json_is_no_case_of_this(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        read_json(text)


def test_a_long_name_is_cut() -> None:
    name = "n" * 1000
    with pytest.raises(Ambiguous) as caught:
        read_json(f'{{"{name}": 1, "{name}": 2}}')
    assert len(str(caught.value)) < 160


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
        max_leaves=10,
    )
)
def test_plain_json_is_read_as_it_is(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
