"""How deep a value may be in each kind of container, what a refusal names, and which trees are their own values."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pydantic
import pytest
from pydantic_core import PydanticUndefined

from agentloom.errors import ValueRefused
from agentloom.format.echoes import text_of
from agentloom.format.encoding import encode_apart, path_of, plain_items
from agentloom.format.limits import DEPTH, INT_MAX, INT_MIN
from agentloom.format.values import Types, decode, encode
from agentloom.format.weights import levels


class Opaque:
    pass


class Access(enum.Flag):
    READ = 1
    FAR = 1 << 70


class Pair(NamedTuple):
    x: Any


@dataclasses.dataclass
class Box:
    x: Any


class Model(pydantic.BaseModel):
    x: Any = None
    _note: Any = pydantic.PrivateAttr(default=None)
    _unset: Any = pydantic.PrivateAttr()


class Open(Model):
    model_config = pydantic.ConfigDict(extra="allow")


TYPES = Types()
for declared in (Access, Pair, Box, Model, Open):
    TYPES.register(declared)


def private(value: Any) -> Model:
    model = Model()
    model._note = value
    return model


def extra(value: Any) -> Open:
    return Open.model_validate({"more": value})


def nested(depth: int, leaf: Any) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"k": leaf}
    return leaf


WRAPPERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "tuple": (lambda item: (item,), "[0]"),
    "named tuple": (Pair, "[0]"),
    "dataclass": (Box, ".x"),
    "model": (lambda item: Model(x=item), ".x"),
    "extra": (extra, ".more"),
    "private": (private, "._note"),
    "set": (lambda item: {item}, "{}"),
    "frozen set": (lambda item: frozenset([item]), "{}"),
    "key": (lambda item: {item: 1}, "[key tuple]"),
    "value beside such a key": (lambda item: {7: item}, "[7]"),
    "tagged mapping": (lambda item: {"$key": item}, "['$key']"),
}


@pytest.mark.parametrize("wrap", [wrap for wrap, _ in WRAPPERS.values()], ids=list(WRAPPERS))
def test_the_limit_of_levels_is_that_of_the_tree_whatever_tags_it_has(wrap: Callable[[Any], Any]) -> None:
    value: Any = wrap((((),),))
    room = DEPTH - levels(encode(value, TYPES))
    tree = encode(
        nested(room - 1, value), TYPES
    )  # the innermost tuple is counted with room for an item's tag
    assert levels(tree) == DEPTH - 1
    with pytest.raises(ValueRefused, match=f"more than {DEPTH} levels deep") as caught:
        encode(nested(room, value), TYPES)
    assert caught.value.type_name == "tuple"
    assert caught.value.path.startswith("k[0].k" if room % 2 else "[0].k[0]")


@pytest.mark.parametrize("wrap", [wrap for wrap, _ in WRAPPERS.values()], ids=list(WRAPPERS))
def test_a_list_may_stand_on_the_last_level_of_any_container(wrap: Callable[[Any], Any]) -> None:
    try:
        value: Any = wrap([[]])
    except TypeError:
        pytest.skip("a list cannot be hashed")
    room = DEPTH - levels(encode(value, TYPES))
    assert levels(encode(nested(room, value), TYPES)) == DEPTH
    with pytest.raises(ValueRefused, match="levels deep"):
        encode(nested(room + 1, value), TYPES)


@pytest.mark.parametrize(("wrap", "path"), WRAPPERS.values(), ids=list(WRAPPERS))
def test_a_refusal_names_the_way_through_every_container(wrap: Callable[[Any], Any], path: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        encode({"a": [wrap((1, Opaque()))]}, TYPES)
    assert caught.value.path == f"a[0]{path}[1]"
    assert caught.value.type_name == f"{__name__}.Opaque"


@pytest.mark.parametrize(
    ("leaf", "room"),
    [
        (2**70, 1),
        (decimal.Decimal(1), 4),
        (dt.date(2026, 1, 1), 4),
        (pathlib.PurePosixPath("x"), 4),
        (Access.READ, 3),
        (Access.FAR, 4),
        ((1,), 3),
        ({7: 1}, 3),
    ],
    ids=str,
)
def test_how_deep_a_leaf_may_stand(leaf: Any, room: int) -> None:
    encode(nested(DEPTH - room, leaf), TYPES)
    with pytest.raises(ValueRefused, match=f"more than {DEPTH} levels deep") as caught:
        encode(nested(DEPTH - room + 1, leaf), TYPES)
    path = "[0].k" * 100
    assert caught.value.path == (path if (DEPTH - room) % 2 else f"k{path}")[: len(caught.value.path)]
    assert len(caught.value.path) >= 2.5 * (DEPTH - room)
    assert caught.value.type_name.rpartition(".")[2] == ("int" if leaf is Access.FAR else type(leaf).__name__)


REASONS: list[tuple[Any, str, str, str]] = [
    (
        type("Text", (str,), {})("x"),
        "tests",
        "a subclass of str would come back as something else",
        "plain data",
    ),
    (
        type("Row", (tuple,), {})(),
        "tests",
        "a subclass of tuple would come back as something else",
        "plain data",
    ),
    (type("Names", (frozenset,), {})(), "tests", "a subclass of frozenset would", "plain data"),
    (Opaque(), "tests", "it has no exact form in a trace", "plain data"),
    (len, "builtin_function_or_method", "it has no exact form in a trace", "plain data"),
    (2**400_000, "int", "an integer of more than 100000 digits", "plain data"),
    (fractions.Fraction(1, 2**400_000), "fractions.Fraction", "an integer of more than 100000", "plain data"),
]


@pytest.mark.parametrize(("value", "name", "reason", "hint"), REASONS, ids=[row[2] for row in REASONS])
def test_a_refusal_names_type_reason_and_remedy(value: Any, name: str, reason: str, hint: str) -> None:
    for types in (None, TYPES):
        with pytest.raises(ValueRefused) as caught:
            encode([(value,)], types)
        assert caught.value.path == "[0][0]"
        assert caught.value.type_name.startswith(name)
        assert caught.value.reason.startswith(reason)
        assert hint in (caught.value.hint or "")


def test_a_type_that_could_be_declared_is_to_be_declared() -> None:
    for value in (Box(1), Pair(1), Access.READ, Model()):
        with pytest.raises(ValueRefused) as caught:
            encode(value)
        assert caught.value.path == "value"
        assert caught.value.reason == "a type that this program did not declare"
        assert "agentloom.register" in (caught.value.hint or "")
        assert caught.value.type_name == f"{__name__}.{type(value).__qualname__}"


def test_what_contains_itself_is_named() -> None:
    loop: dict[str, Any] = {"t": (1,)}
    loop["again"] = ([loop],)
    with pytest.raises(ValueRefused) as caught:
        encode(loop)
    assert (caught.value.path, caught.value.type_name) == ("again[0][0]", "dict")
    assert caught.value.reason == "it contains itself"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, True),
        (True, True),
        (False, True),
        ({"a": [1, 2.5, "x", None]}, True),
        ([{"price": "$5", "said": '{"$ref'}], True),
        ([[]] * (DEPTH + 100), True),
        ({"a": "[" * 500}, True),
        (nested(DEPTH, "leaf"), True),
        (nested(DEPTH - 3, (1,)), False),
        ((1,), False),
        ([float("inf")], False),
        ({"$tag": 1}, False),
        ([{1: 2}], False),
        ([2**70], False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_whether_a_tree_is_its_own_value(value: Any, plain: bool) -> None:
    tree, apart, text = encode_apart(value)
    assert apart is plain
    assert text is None or text == text_of(tree)
    assert decode(tree) == value
    assert (tree == value) or not plain


def test_plain_items_are_copied_with_their_texts() -> None:
    items: list[Any] = [{"a": [1]}, "x", 2.5]
    taken = plain_items(items)
    assert taken is not None
    copies, texts = taken
    assert copies == items
    assert copies[0] is not items[0]
    assert texts == [b'{"a":[1]}', b'"x"', b"2.5"]
    for odd in ((1,), {"$a": 1}, float("nan"), Opaque(), "\ud800", 2**70, nested(DEPTH - 1, 1)):
        assert plain_items(["x", odd]) is None, odd
    assert plain_items([{"a": "$5"}, nested(DEPTH - 2, 1), [[]] * DEPTH]) is not None


def test_keys_are_kept_as_they_are_where_json_has_them() -> None:
    assert encode({"\u00e9": (1,), "a": 2}) == {"\u00e9": {"$tuple": [1]}, "a": 2}
    assert encode({"a": (1,), "\ud800": 2}) == {"$map": [["a", {"$tuple": [1]}], [{"$str": "7aCA"}, 2]]}
    assert encode({"$a": (), "b": 1}) == {"$a": {"$tuple": []}, "b": 1}


def test_integers_at_the_ends_of_64_bits_are_numbers_everywhere() -> None:
    value = (INT_MIN, INT_MAX, fractions.Fraction(INT_MAX, 2), range(INT_MIN, INT_MAX))
    assert encode(value) == {
        "$tuple": [
            INT_MIN,
            INT_MAX,
            {"$fraction": [INT_MAX, 2]},
            {"$range": [INT_MIN, INT_MAX, 1]},
        ]
    }
    beyond = (INT_MIN - 1, INT_MAX + 1)
    assert encode(beyond) == {"$tuple": [{"$int": str(INT_MIN - 1)}, {"$int": str(INT_MAX + 1)}]}


def test_what_a_model_never_set_stays_unset() -> None:
    model = Model(x=1)
    assert model.__pydantic_private__ is not None
    model.__pydantic_private__["_unset"] = PydanticUndefined
    model._note = "kept"
    found = decode(encode(model, TYPES), TYPES)
    assert found.__pydantic_private__ == {"_note": "kept"}


def test_a_path_is_text() -> None:
    assert path_of(None) == "value"
    assert path_of(((None, ".a"), "[0]")) == "a[0]"
    assert path_of((((None, "[0]"), ".a"), ".b")) == "[0].a.b"


@pytest.mark.parametrize(
    ("key", "part"),
    [("two words", "['two words']"), (3, "[3]"), (2.5, "[2.5]"), (None, "[None]"), (True, "[True]"),
     (b"x", "[b'x']"), ((1,), "[tuple]"), ("name", ".name")],
)  # fmt: skip
def test_a_key_is_shown_when_it_is_plain(key: Any, part: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        encode({"m": {key: Opaque(), 7: 1}})
    assert caught.value.path == f"m{part}"
