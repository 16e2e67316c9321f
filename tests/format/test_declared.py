"""Which user types a declaration reaches."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar, Union

import pydantic
import pydantic.dataclasses
import pytest
from typing_extensions import TypeAliasType

from agentloom.errors import ValueRefused
from agentloom.format.declared import how_of, type_name
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


def reached(annotation: object) -> set[type]:
    types = Types()
    types.declare(annotation)
    return {cls for cls in (Outer, Inner, Kind, Model, Pair, Box) if types.how(cls)}


class Opaque:
    kind: Kind


class Failure(Exception):
    inner: Inner


class Marked(enum.Enum):
    inner: Inner
    A = 1


class Recursive:
    """As an alias of `type X = ...` that names itself."""

    __value__: object


class Settings(pydantic.BaseModel):
    kind: ClassVar[Kind] = Kind.A
    pair: Pair | None = None
    _inner: Outer | None = None


@pydantic.dataclasses.dataclass
class Checked:
    kind: Kind


def test_declaring_reaches_through_parameters_and_aliases() -> None:
    assert reached(Callable[[Kind, list[Inner]], Pair]) == {Kind, Inner, Pair}
    assert reached([Kind, (Pair,)]) == {Kind, Pair, Inner}
    assert reached(TypeVar("T", Kind, int)) == {Kind}
    assert reached(TypeAliasType("Alias", list[Pair])) == {Pair, Inner, Kind}
    alias = Recursive()
    alias.__value__ = dict[str, Recursive] | list[Kind]
    again = Recursive()
    again.__value__ = (again, alias)
    assert reached(again) == {Kind}


def test_declaring_reaches_no_fields_of_what_has_none() -> None:
    assert reached(Opaque) == set()
    assert reached(Failure) == set()
    assert reached(Marked) == set()
    assert reached(Settings) == {Pair, Inner, Kind}
    settings = Types()
    settings.declare(Settings)
    assert settings.how(Outer) is None


def test_fields_whose_types_cannot_be_evaluated_hide_no_others() -> None:
    made = dataclasses.make_dataclass(
        "made", [("a", Kind), ("b", "Nowhere"), ("c", "Outer"), ("d", list[Pair])]
    )
    assert reached(made) == {Kind, Pair, Inner}
    bare = type("bare", (made,), {})
    assert reached(bare) == set()


@pytest.mark.parametrize(
    ("cls", "how"),
    [
        (Kind, "enum"),
        (enum.Flag, "enum"),
        (Inner, "dataclass"),
        (Checked, "dataclass"),
        (Model, "model"),
        (Pair, "namedtuple"),
        (ValueError, "error"),
        (Failure, "error"),
        (KeyboardInterrupt, "error"),
        (Opaque, None),
        (tuple, None),
        (type("Row", (tuple,), {}), None),
        (type("Text", (str,), {}), None),
        (type("Table", (dict,), {}), None),
        (int, None),
    ],
    ids=str,
)
def test_how_a_type_is_written(cls: type, how: str | None) -> None:
    assert how_of(cls) == how
    types = Types()
    types.declare(cls)
    assert types.how(cls) == how
    assert types.find(type_name(cls), how or "enum") is (cls if how else None)


def test_what_cannot_be_registered_is_named() -> None:
    with pytest.raises(ValueRefused) as caught:
        Types().register(Opaque)
    assert (caught.value.path, caught.value.type_name) == ("register", f"{__name__}:Opaque")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("make it one of these")
