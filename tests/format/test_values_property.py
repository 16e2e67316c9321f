"""Every supported type, nested in every other: equal type for type, order for order, bit for bit, and the same bytes
in a process with another hash seed, time zone and locale."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import orjson
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.dataclasses import dataclass as pydantic_dataclass

from agentloom.format.canonical import canonical, dump, load
from agentloom.format.values import Types, decode, encode
from tests.format.strategies import STEADY, ZONES, scalars, texts

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1
    BLUE = ("b", 2)


class Word(str, enum.Enum):  # noqa: UP042  this is the old way that much code has
    HELLO = "hello"


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: Any
    y: Any = 0


@dataclass
class Box:
    content: Any
    more: list[Any] = field(default_factory=list[Any])


@dataclass(frozen=True)
class Sealed:
    content: Any
    _: dataclasses.KW_ONLY
    label: str = "x"


@dataclass(slots=True)
class Slotted(Generic[T]):
    content: T


@pydantic_dataclass
class Checked:
    content: Any


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    content: Any = None
    _note: Any = pydantic.PrivateAttr(default=None)


class Rows(pydantic.RootModel[list[Any]]):
    pass


class Holder(pydantic.BaseModel, Generic[T]):
    content: T


class Failed(Exception):
    def __init__(self, code: Any, *, detail: Any) -> None:
        super().__init__(f"failed with {type(code).__name__}")
        self.code = code
        self.detail = detail


class Batch(ExceptionGroup[Exception]):
    pass


KINDS = (
    Colour,
    Word,
    Access,
    Point,
    Box,
    Sealed,
    Slotted,
    Checked,
    Model,
    Rows,
    Holder,
    Holder[int],
    Failed,
    Batch,
)
TYPES = Types()
for kind in KINDS:
    TYPES.register(kind)

bits = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack(">d", n.to_bytes(8, "big"))[0])
members = st.sampled_from([*Colour, *Word, Access.READ, Access.READ | Access.WRITE, Access(0)])
moments = st.builds(
    lambda when, zone, fold: when.replace(tzinfo=zone, fold=fold),
    st.datetimes(),
    ZONES,
    st.integers(0, 1),
)
odd = st.sampled_from([Decimal("NaN"), Decimal("-sNaN7"), -(2**64), complex(-0.0, float("nan")), "\ud800x"])
huge = st.integers(4000, 5000).map(lambda digits: 10**digits)  # beyond what int() and str() take
leaves = scalars | bits | members | moments | odd | huge
# What can be a key of a mapping or a member of a set: two of them may be equal, then they are one.
hashables: st.SearchStrategy[Any] = st.recursive(
    scalars.filter(lambda value: not isinstance(value, bytearray)) | members | moments | texts,
    lambda inner: st.one_of(
        st.tuples(inner, inner), inner.map(Point), inner.map(Sealed), st.frozensets(inner, max_size=3)
    ),
    max_leaves=4,
)


def _model(content: Any, extra: dict[str, Any], note: Any) -> Model:
    made = Model.model_construct(content=content, **extra)
    made._note = note
    return made


def _failed(code: Any, detail: Any, cause: BaseException | None, note: str) -> Failed:
    made = Failed(code, detail=detail)
    made.__cause__ = cause
    made.add_note(note)
    return made


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    causes = st.none() | st.builds(ValueError, inner) | st.builds(OSError, st.integers(1, 99), texts, texts)
    errors = st.builds(_failed, inner, inner, causes, texts)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(texts, inner, max_size=4),
        st.dictionaries(hashables, inner, max_size=4),
        st.sets(hashables, max_size=4),
        st.frozensets(hashables, max_size=4),
        st.builds(Point, inner, inner),
        st.builds(Box, inner, st.lists(inner, max_size=2)),
        st.builds(lambda content, label: Sealed(content, label=label), inner, texts),
        inner.map(Slotted),
        inner.map(Checked),
        st.builds(
            _model, inner, st.dictionaries(st.sampled_from(["a", "b", "$c"]), inner, max_size=2), inner
        ),
        st.builds(Rows.model_construct, st.lists(inner, max_size=2)),
        inner.map(lambda content: Holder.model_construct(content=content)),
        errors,
        st.builds(lambda group: Batch("some", group), st.lists(errors, min_size=1, max_size=2)),
    )


everything = st.recursive(leaves, _containers, max_leaves=10)


def exact(left: Any, right: Any) -> bool:
    """Whether two values are the same: equal types all the way down, order of mappings, bits of floats."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack(">d", left) == struct.pack(">d", right)
    if isinstance(left, complex):
        return exact((left.real, left.imag), (right.real, right.imag))
    if isinstance(left, enum.Enum):
        return left is right
    if isinstance(left, dict):
        return exact(list(left.items()), list(right.items()))
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and all(any(exact(one, two) for two in right) for one in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(exact, left, right))
    if isinstance(left, (dt.datetime, dt.time)):
        return exact(_clock(left), _clock(right))
    if isinstance(left, (str, bytes, int)):
        return bool(left == right)
    state = _state(left)
    return repr(left) == repr(right) if state is None else exact(state, _state(right))


def _clock(moment: Any) -> tuple[Any, ...]:
    return repr(moment.replace(tzinfo=None)), moment.fold, repr(moment.tzinfo), moment.utcoffset()


def _state(value: Any) -> Any:
    """What an object of a user's type holds; None for other types."""
    if isinstance(value, BaseException):
        return value.args, vars(value), value.__cause__, _text(value), value.__suppress_context__
    if isinstance(value, pydantic.BaseModel):
        return vars(value), value.model_extra, value.__pydantic_private__, value.model_fields_set
    if dataclasses.is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except ValueError as broken:  # an integer of more digits than str() takes
        return type(broken).__name__


def test_the_comparison_has_teeth() -> None:
    pairs: list[tuple[Any, Any]] = [
        (1, 1.0), (True, 1), (0.0, -0.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ((1,), [1]), (Box(1), Box(1.0)),
        (Failed(1, detail=2), Failed(1, detail=3)), ({1}, {True}), (Word.HELLO, "hello"), (Point(1), (1, 0)),
        (dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
         dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)),
        (Model(content=1), Model.model_construct(content=1, a=2)),
    ]  # fmt: skip
    for left, right in pairs:
        assert exact(left, left)
        assert not exact(left, right)


@settings(STEADY, max_examples=400)
@given(everything)
def test_every_value_comes_back_exactly(value: Any) -> None:
    tree = encode(value, TYPES)
    found = decode(load(dump(tree)), TYPES)
    assert exact(found, value)
    assert dump(encode(found, TYPES)) == dump(tree), "and is written with the same bytes again"


@STEADY
@given(everything)
def test_nothing_of_the_value_is_shared_with_its_tree(value: Any) -> None:
    tree = encode(value, TYPES)
    before = dump(tree)
    first, second = decode(tree, TYPES), decode(tree, TYPES)
    for found in (value, first):
        _spoil(found)
    assert dump(tree) == before
    assert dump(encode(second, TYPES)) == before


def _spoil(value: Any) -> None:
    """Change whatever can be changed in a value."""
    if isinstance(value, BaseException):
        below: list[Any] = [*value.args, *vars(value).values()]
        value.args = ()
        vars(value).clear()
    elif isinstance(value, (Box, Slotted, Checked, Model)):
        below = [value.content]
        value.content = "spoilt"
    elif isinstance(value, (list, bytearray, set, dict)):
        below = list(value.values()) if isinstance(value, dict) else list(value)
        value.clear()
    else:
        below = list(value) if isinstance(value, tuple) else []
    for item in below:
        _spoil(item)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_registered_type_is_restored_from_the_registration_alone(kind: type) -> None:
    """``agentloom.register`` is all that a program needs to do; without it the value is plain data to look at."""
    made: dict[Any, Callable[[], Any]] = {
        Colour: lambda: Colour.BLUE, Word: lambda: Word.HELLO, Access: lambda: Access.READ | Access.WRITE,
        Failed: lambda: Failed(1, detail=2), Batch: lambda: Batch("b", [ValueError(1)]),
        Model: lambda: Model(content=1), Rows: lambda: Rows([1]),
    }  # fmt: skip
    value = made[kind]() if kind in made else Point(1) if kind is Point else kind(content=1)
    types = Types()
    types.register(kind)
    assert exact(decode(encode(value, types), types), value)
    decode(encode(value, types))  # without the program


# -- the same bytes everywhere ----------------------------------------------------------------------------------------

_SCRIPT = """
import hashlib, sys
sys.path.insert(0, {root!r})
from hypothesis import given, settings
from agentloom.format.canonical import canonical, dump
from agentloom.format.values import encode
from tests.format.strategies import STEADY
from tests.format.test_values_property import TYPES, everything
found = hashlib.sha256()
@settings(STEADY, max_examples=60)
@given(everything)
def collect(value):
    tree = encode(value, TYPES)
    found.update(dump(tree) + canonical(tree))
collect()
print(found.hexdigest())
"""


def _digest(**variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    script = _SCRIPT.format(root=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_same_bytes_under_another_hash_seed_time_zone_and_locale() -> None:
    here = _digest(PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C", PYTHONUTF8="0")
    there = _digest(PYTHONHASHSEED="77", TZ="Asia/Kolkata", LC_ALL="de_DE.UTF-8", PYTHONUTF8="1")
    assert here == there


def test_sets_are_written_in_one_order() -> None:
    up, down = (set[str]() for _ in range(2))
    for n in range(50):
        up.add(f"word {n}")
        down.add(f"word {49 - n}")
    assert dump(encode(up)) == dump(encode(down))
    assert canonical(encode({"a": {1, 1.5, "1", b"1", (1,)}})) == canonical(
        encode({"a": {(1,), b"1", "1", 1.5, 1}})
    )
    assert orjson.loads(dump(encode({2, 10, 1})))["$set"] == [1, 10, 2]
