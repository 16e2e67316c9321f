"""What a tool takes, without the words about it."""

from __future__ import annotations

import dataclasses
import enum
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel, Field

from agentloom import tool
from agentloom.format.canonical import canonical
from agentloom.runtime.tool_schema import schema_of_tool


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Order:
    number: int
    lines: list[Order]


class Card(TypedDict):
    number: str


class Place(NamedTuple):
    x: int


class Model(BaseModel):
    amount: float = Field(description="how much")


def one(order: int, amount: float = 1.0) -> None: ...


def same_with_words(order: Annotated[int, "the order"], amount: float = 2.0) -> str:
    """Words."""
    return ""


def other_type(order: str, amount: float = 1.0) -> None: ...
def other_name(number: int, amount: float = 1.0) -> None: ...
def must_be_given(order: int, amount: float) -> None: ...
def by_name_only(order: int, *, amount: float = 1.0) -> None: ...


def test_types_count_and_descriptions_do_not() -> None:
    assert schema_of_tool(one) == {"order": {"type": "int"}, "amount": {"type": "float", "optional": True}}
    assert schema_of_tool(same_with_words) == schema_of_tool(one)
    others: list[Callable[..., Any]] = [other_type, other_name, must_be_given, by_name_only]
    for other in others:
        assert schema_of_tool(other) != schema_of_tool(one)
    assert schema_of_tool(tool(one)) == schema_of_tool(one)


def test_fields_of_classes_are_part_of_it() -> None:
    def takes(
        order: Order, colour: Colour, card: Card, place: Place, model: Model, many: dict[str, list[int] | None],
        which: Literal["a", 1], anything: Any, *rest: bytes, **more: object,
    ) -> None: ...  # fmt: skip

    made = schema_of_tool(takes)
    here = __name__
    order: Any = made["order"]
    assert order["type"]["fields"]["number"] == "int"
    assert order["type"]["fields"]["lines"] == {"of": "list", "items": [f"{here}.Order"]}  # once is enough
    assert made["colour"] == {"type": {"type": f"{here}.Colour", "members": {"RED": "1"}}}
    assert made["card"] == {"type": {"type": f"{here}.Card", "fields": {"number": "str"}}}
    assert made["place"] == {"type": {"type": f"{here}.Place", "fields": {"x": "int"}}}
    assert made["model"] == {"type": {"type": f"{here}.Model", "fields": {"amount": "float"}}}
    assert made["many"] == {
        "type": {"of": "dict", "items": ["str", {"any of": [{"of": "list", "items": ["int"]}, "None"]}]}
    }
    assert made["which"] == {"type": {"literal": ["'a'", "1"]}}
    assert made["anything"] == {"type": "Any"}
    assert made["rest"] == {"type": "bytes", "kind": "variadic positional"}
    assert canonical(dict(made))


def test_annotations_that_mean_nothing_here_count_as_they_are_written() -> None:
    def takes(order: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the point

    assert schema_of_tool(takes) == {"order": {"type": "Missing"}}


@pytest.mark.parametrize("odd", [Callable[[int], str], list, tuple[int, ...], "text"])
def test_odd_annotations_are_plain_data(odd: Any) -> None:
    def takes(value: Any) -> None: ...

    takes.__annotations__["value"] = odd
    assert canonical(dict(schema_of_tool(takes)))


PROGRAM = """
import enum
from agentloom.runtime.tool_schema import schema_of_tool

class Right(enum.Enum):
    ALL = frozenset({"read", "write", "grant", "drop"})
    SOME = (1, {"read", "write", "grant"})
    ADD = object()

def helper(): ...

def takes(right: Right, odd: helper): ...

print(schema_of_tool(takes))
"""


def test_it_is_the_same_in_each_process() -> None:
    made = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "123"
    }  # fmt: skip
    assert len(made) == 1, made
    assert "ALL" in made.pop()
