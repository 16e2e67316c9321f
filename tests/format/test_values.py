"""decode(encode(x)) is x, for every kind of value that a trace keeps; the rest is refused with its path."""

from __future__ import annotations

import enum
import io
import math
import struct
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson
import pydantic
import pytest
from hypothesis import given

from agentloom.errors import FormatError, ValueRefused
from agentloom.format.canonical import load
from agentloom.format.encoding import _ORJSON_DEPTH, encode
from agentloom.format.limits import DEPTH, INT_DIGITS
from agentloom.format.values import Types, decode
from tests.format.strategies import STEADY, same, trees, values


class Colour(enum.Enum):
    RED = 1
    ALSO_RED = 1  # noqa: PIE796  an alias
    BLUE = "blue"


class Level(str, enum.Enum):  # noqa: UP042  this is the old way that much code has
    LOW = "low"


class Rank(enum.IntEnum):
    FIRST = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Line:
    sku: str
    count: int
    tags: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    lines: tuple[Line, ...]
    colour: Colour


class Point(NamedTuple):
    x: int
    y: float


class Address(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    street: str
    number: int = 1
    _note: str = pydantic.PrivateAttr(default="private")


class Person(pydantic.BaseModel):
    name: str
    homes: list[Address] = []
    rank: Rank = Rank.FIRST


TYPES = Types()
for declared in (Colour, Level, Rank, Access, Order, Point, Person):
    TYPES.register(declared)


def round_trip(value: object) -> Any:
    text = orjson.dumps(encode(value, TYPES))
    return decode(load(text), TYPES)


@STEADY
@given(values)
def test_every_value_comes_back_exactly(value: Any) -> None:
    assert same(round_trip(value), value)


@STEADY
@given(trees)
def test_plain_data_takes_the_fast_way_and_comes_back(value: Any) -> None:
    copy = encode(value)
    assert same(decode(copy), value)


@STEADY
@given(values)
def test_plain_reading_never_fails(value: Any) -> None:
    decode(encode(value, TYPES))


@pytest.mark.parametrize(
    ("tree", "read"),
    [
        ({"$obj": {"type": "m:Colour", "how": "enum", "data": "RED"}}, "Colour.RED"),
        ({"$obj": {"type": "m:Mask", "how": "enum", "data": [{"$int": "3"}]}}, 3),
        ({"$obj": {"type": "m:Pair", "how": "namedtuple", "data": [1, {"$tuple": [2]}]}}, [1, (2,)]),
        ({"$obj": {"type": "m:Item", "how": "dataclass", "data": {"a": {"$tuple": []}}}}, {"a": ()}),
        (
            {
                "$obj": {
                    "type": "m:M",
                    "how": "model",
                    "data": {"fields": {"a": {"$tuple": []}}, "set": ["a"]},
                }
            },
            {"a": ()},
        ),
        (
            {
                "$obj": {
                    "type": "m:M",
                    "how": "model",
                    "data": {"fields": {"a": 1}, "set": [], "extra": {"b": {"$tuple": [1]}}},
                }
            },
            {"a": 1, "b": (1,)},
        ),
        ({"$error": {"type": "KeyError", "args": {"$tuple": [1]}}}, {"type": "KeyError", "args": (1,)}),
        ({"$of_later": {"$tuple": [1]}}, {"$of_later": {"$tuple": [1]}}),
    ],
)
def test_plain_reading_gives_data_for_what_is_not_declared(tree: Any, read: Any) -> None:
    assert decode([tree]) == [read]
    assert decode({"a": tree}) == {"a": read}


@STEADY
@given(trees)
def test_plain_reading_of_any_json_never_fails(tree: Any) -> None:
    for wrapped in (
        {"$datetime": tree},
        {"$obj": tree},
        {"$error": tree},
        {"$set": tree},
        {"$map": tree},
        {"$path": tree},
    ):
        decode(wrapped)


@pytest.mark.parametrize(
    "value",
    [
        {"$ref": "0" * 64},
        {"a": {"$list": ["0" * 64, 1, []]}},
        {"$map": [[1, 2]]},
        {"$": None},
        [{"$int": "7"}],
        {"$ref": 1, "second": 2},
    ],
)
def test_a_users_mapping_forges_no_tag(value: Any) -> None:
    tree = encode(value)
    assert b'{"$ref":"' not in orjson.dumps(tree)
    assert same(round_trip(value), value)


@pytest.mark.parametrize(
    "value",
    [2**70, -(2**70), 2**64, -(2**63) - 1, 2**64 - 1, 10**5000, -(10**99_999)],
    ids=lambda value: f"{value.bit_length()} bits",
)
def test_integers_of_any_size(value: int) -> None:
    assert same(round_trip([value]), [value])


def test_an_integer_over_the_limit_is_refused() -> None:
    assert round_trip(10**INT_DIGITS - 1) == 10**INT_DIGITS - 1
    with pytest.raises(ValueRefused, match="100000 digits") as caught:
        encode({"n": [10**INT_DIGITS]})
    assert caught.value.path == "n[0]"


def test_floats_keep_their_bits() -> None:
    odd = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    for number in (-0.0, 0.1, 5e-324, math.inf, -math.inf, math.nan, odd, 2.0**70):
        found = round_trip([number])[0]
        assert type(found) is float
        assert struct.pack(">d", found) == struct.pack(">d", number)


def test_user_types_come_back() -> None:
    order = Order(7, (Line("a", 1, {"x", "y"}), Line("b", 2)), Colour.RED)
    for value in (order, [Level.LOW, Rank.FIRST, Access.READ | Access.WRITE, Colour.BLUE], Point(1, 2.0)):
        found = round_trip(value)
        assert found == value
        assert repr(found) == repr(value)


def test_a_mixed_in_enum_is_not_taken_for_its_value() -> None:
    for value in (Level.LOW, Rank.FIRST):
        assert type(round_trip({"v": value})["v"]) is type(value)
        with pytest.raises(ValueRefused):
            encode({"v": value})


def test_pydantic_models_come_back_with_their_state() -> None:
    person = Person(name="Ada", homes=[Address.model_validate({"street": "x", "floor": 3})])
    person.homes[0]._note = "changed"
    found = round_trip(person)
    assert found == person
    assert found.homes[0]._note == "changed"
    assert found.model_fields_set == {"name", "homes"}
    assert found.homes[0].model_extra == {"floor": 3}
    assert found.model_dump_json() == person.model_dump_json()


def test_restoring_runs_no_code_of_the_type() -> None:
    @dataclass
    class Loud:
        n: int

        def __post_init__(self) -> None:
            raise AssertionError("ran")

    types = Types()
    types.register(Loud)
    loud = object.__new__(Loud)
    loud.n = 1
    assert decode(encode(loud, types), types).n == 1


def test_a_computed_attribute_is_left_out_and_another_is_refused() -> None:
    @dataclass
    class Lazy:
        n: int

        @cached_property
        def twice(self) -> int:
            return self.n * 2

    types = Types()
    types.register(Lazy)
    lazy = Lazy(2)
    assert lazy.twice == 4
    assert decode(encode(lazy, types), types).twice == 4
    vars(lazy)["other"] = 1
    with pytest.raises(ValueRefused) as caught:
        encode([lazy], types)
    assert caught.value.path == "[0].other"


class Text(str):  # noqa: SLOT000
    pass


class Opaque:
    pass


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, {"db": Opaque()}]}, "a[1].db"),
        ({"messages": [{"content": {"when": io.StringIO()}}]}, "messages[0].content.when"),
        ({"two words": Opaque()}, "['two words']"),
        ([Text("x")], "[0]"),
        ({Text("k"): 1}, "[key Text]"),
        (OrderedDict(a=1), "value"),
        (defaultdict(list), "value"),
        ((1, [len]), "[1][0]"),
        ({1: {2: Opaque()}}, "[1][2]"),
        (Opaque, "value"),
        (memoryview(b"x"), "value"),
        (Order(1, (Line("a", 1),), Colour.RED), "value"),
        ({"x": Colour.RED}, "x"),
    ],
)
def test_what_cannot_come_back_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        encode(value)
    assert caught.value.path == path
    assert caught.value.hint


def test_the_message_holds_no_text_of_the_value() -> None:
    class Secret:
        def __repr__(self) -> str:
            raise AssertionError("asked for its text")

        __str__ = __repr__

    with pytest.raises(ValueRefused, match="Secret"):
        encode({"a": Secret()})


def test_cycles_are_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    with pytest.raises(ValueRefused, match="contains itself") as caught:
        encode(loop)
    assert caught.value.path == "[1].again"
    twice: list[Any] = [[1, 2]]
    twice.append(twice[0])
    assert round_trip(twice) == twice


def nested(depth: int, leaf: Any = 1) -> Any:
    value = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize("leaf", [1, 2**70])
def test_the_depth_limit(leaf: Any) -> None:
    allowed = DEPTH - (0 if leaf == 1 else 1)
    assert same(round_trip(nested(allowed, leaf)), nested(allowed, leaf))
    with pytest.raises(ValueRefused, match="levels deep"):
        encode(nested(allowed + 1, leaf))
    with pytest.raises(ValueRefused, match="levels deep"):
        encode(nested(5000, leaf))


def test_orjson_stops_where_the_depth_check_assumes() -> None:
    orjson.dumps(nested(_ORJSON_DEPTH))
    with pytest.raises(TypeError):
        orjson.dumps(nested(_ORJSON_DEPTH + 1))


def test_what_was_captured_does_not_change() -> None:
    values: list[Any] = [{"a": [1, {"b": 2}]}, {"a": [1, {"b": (2,)}]}]
    for value in values:
        tree = encode(value)
        before = orjson.dumps(tree)
        value["a"].append("later")
        value["a"][1]["b"] = "later"
        assert orjson.dumps(tree) == before


@pytest.mark.parametrize("tree", [{"a": [1, {"b": 2}]}, {"a": [1, {"$tuple": [{"b": 2}]}]}])
def test_each_decoding_is_fresh(tree: Any) -> None:
    first, second = decode(tree, TYPES), decode(tree, TYPES)
    first["a"].append("mine")
    assert second == decode(tree, TYPES)
    assert len(tree["a"]) == 2


def test_a_field_that_is_gone_is_an_error() -> None:
    tree: Any = encode(Line("a", 1), TYPES)
    tree["$obj"]["data"]["__class__"] = "x"
    with pytest.raises(FormatError, match="no field '__class__'"):
        decode(tree, TYPES)


def test_an_undeclared_type_says_what_to_do() -> None:
    tree = encode(Colour.RED, TYPES)
    with pytest.raises(FormatError, match="did not declare") as caught:
        decode(tree, Types())
    assert caught.value.code == "value.undeclared"
    assert decode(tree) == "Colour.RED"


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        ({"$new": 1}, "value.unknown"),
        ({"$int": "x"}, "value.tag"),
        ({"$int": "1_0"}, "value.tag"),
        ({"$bytes": "%"}, "value.tag"),
        ({"$float": "1.5"}, "value.tag"),
        ({"$set": [[1]]}, "value.tag"),
        ({"$map": [[1]]}, "value.tag"),
        ({"$datetime": "yesterday"}, "value.tag"),
        ({"$path": ["nowhere", "x"]}, "value.tag"),
        ({"$obj": {"type": "x"}}, "value.tag"),
    ],
)
def test_a_bad_tag_is_an_error_for_the_agent_and_data_for_a_view(tree: Any, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        decode(tree, TYPES)
    assert caught.value.code == code
    assert decode(tree) == tree


def test_deep_trees_are_read_although_orjson_does_not_write_them() -> None:
    tree: Any = {"$tuple": [1]}
    for _ in range(_ORJSON_DEPTH + 50):
        tree = [tree]
    value = decode(tree)
    for _ in range(_ORJSON_DEPTH + 50):
        (value,) = value
    assert value == (1,)


def test_plain_reading_shows_an_error_as_it_was_written() -> None:
    tree: Any = encode([ValueError("x", (1,))], TYPES)
    assert decode(tree) == [
        {"type": "builtins:ValueError", "args": ["x", (1,)], "attrs": {}, "message": "('x', (1,))"}
    ]
    assert type(decode(tree, TYPES)[0]) is ValueError


@pytest.mark.parametrize(
    ("tree", "code", "words", "hint"),
    [
        ({"$new": 1}, "value.unknown", r"the tag \$new is not known", "upgrade agentloom"),
        (
            {"$obj": {"type": "m:T", "how": "enum", "data": "A"}},
            "value.undeclared",
            "the trace holds a enum m:T|the trace holds an enum m:T",
            "register it, or declare it in the annotations of the tool",
        ),
        ({"$set": [[1]]}, "value.tag", r"a \$set that cannot be read: unhashable type: 'list'", None),
        ({"$obj": {"type": "m:T"}}, "value.tag", r"a \$obj that cannot be read: 'how'", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_an_agent_cannot_have_is_named(tree: Any, code: str, words: str, hint: str | None) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        decode({"a": [tree]}, TYPES)
    assert (caught.value.code, caught.value.hint) == (code, hint)


def test_a_model_without_optional_state_comes_back_as_pydantic_makes_it() -> None:
    class Root(pydantic.RootModel[list[int]]):
        pass

    types = Types()
    types.register(Root)
    found = decode(encode(Root([1, 2]), types), types)
    assert found == Root([1, 2])
    assert found.model_extra is None
    assert vars(found) == {"root": [1, 2]}


def test_what_a_model_computes_and_keeps_is_no_field() -> None:
    class Lazy(pydantic.BaseModel):
        n: int

        @cached_property
        def twice(self) -> int:
            return self.n * 2

    types = Types()
    types.register(Lazy)
    lazy = Lazy(n=2)
    assert lazy.twice == 4
    tree: Any = encode(lazy, types)
    assert tree["$obj"]["data"] == {"fields": {"n": 2}, "set": ["n"]}
    assert decode(tree, types).twice == 4
