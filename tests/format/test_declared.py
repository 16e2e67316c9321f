"""Which user types a declaration reaches."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, Union

import pydantic
import pytest

from agentloom.errors import ValueRefused
from agentloom.format.values import Types


class Kind(enum.Enum):
    A = 1


@dataclass
class Inner:
    kind: Kind


@dataclass
class Outer:
    inner: list[Inner]
    again: Outer | None = None


class Pair(NamedTuple):
    inner: Inner
    n: int


class Model(pydantic.BaseModel):
    pair: dict[str, Pair | None]


Item = TypeVar("Item", bound=Inner)


@dataclass
class Box(Generic[Item]):
    item: Item


@pytest.mark.parametrize(
    ("annotation", "reached"),
    [
        (Outer, {Outer, Inner, Kind}),
        (list[Outer], {Outer, Inner, Kind}),
        (dict[str, tuple[Inner, ...]], {Inner, Kind}),
        (Union[Kind, None], {Kind}),  # noqa: UP007  old code has it
        (Kind | int, {Kind}),
        (Annotated[Kind, "noted"], {Kind}),
        (Model, {Model, Pair, Inner, Kind}),
        (Box[Inner], {Box, Inner, Kind}),
        (Box, {Box, Inner, Kind}),
        (int, set()),
        (Any, set()),
        ("Outer", set()),
        (None, set()),
    ],
    ids=lambda value: "" if isinstance(value, set) else str(value),
)
def test_declaring_reaches_through_containers_and_fields(annotation: object, reached: set[type]) -> None:
    types = Types()
    types.declare(annotation)
    assert {cls for cls in (Outer, Inner, Kind, Model, Pair, Box) if types.how(cls)} == reached


def test_registering_what_cannot_be_kept_is_refused() -> None:
    class Opaque:
        pass

    for cls in (Opaque, int, dict):
        with pytest.raises(ValueRefused, match="not an Enum, dataclass"):
            Types().register(cls)


def test_types_start_with_those_of_others() -> None:
    base = Types()
    base.register(Kind)
    more = Types(base)
    more.register(Inner)
    assert more.how(Kind) == "enum"
    assert base.how(Inner) is None


def test_a_name_finds_its_kind_only() -> None:
    types = Types()
    types.register(Kind)
    name = f"{Kind.__module__}:Kind"
    assert types.find(name, "enum") is Kind
    assert types.find(name, "dataclass") is None
    assert types.find("os:system", "enum") is None


def test_a_reloaded_class_replaces_the_old_one() -> None:
    def make() -> type:
        @dataclass
        class Same:
            n: int

        return Same

    types = Types()
    old, new = make(), make()
    types.register(old)
    types.register(new)
    name = f"{new.__module__}:{new.__qualname__}"
    assert types.find(name, "dataclass") is new
