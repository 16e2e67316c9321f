"""What is kept of a stranger's result is plain data."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from typing import Any, NamedTuple

import pydantic
import pytest

from agentloom.runtime.outputs_kept import kept_output


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    left: int
    right: str


class Model(pydantic.BaseModel):
    name: str
    when: dt.date


@dataclasses.dataclass
class Data:
    colour: Colour
    pair: Pair
    model: Model


@pytest.mark.parametrize("value", [None, 1, "a", [1, {"a": (2, {3})}], {"when": dt.date(2024, 1, 2)}])
def test_values_of_the_language_are_kept_as_they_are(value: Any) -> None:
    kept, why = kept_output(value)
    assert (kept, why) == (value, None)
    assert kept is not value or not isinstance(value, list | dict)


def test_types_that_nobody_declared_become_plain_data() -> None:
    value = Data(Colour.RED, Pair(1, "x"), Model(name="n", when=dt.date(2024, 1, 2)))
    kept, why = kept_output([value])
    assert why is None
    assert kept == [
        {"colour": "Colour.RED", "pair": [1, "x"], "model": {"name": "n", "when": dt.date(2024, 1, 2)}}
    ]


def test_what_has_no_form_is_named() -> None:
    kept, why = kept_output({"a": [object()]})
    assert kept is None
    assert why is not None
    assert why.startswith("a[0]: object, ")
