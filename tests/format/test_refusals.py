"""What cannot come back exactly is refused when it is recorded, with its path, its type and what to do."""

from __future__ import annotations

import array
import asyncio
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import io
import re
import sqlite3
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from agentloom.errors import ValueRefused
from agentloom.format.values import Types, decode, encode


class Text(str):  # noqa: SLOT000
    pass


class Money(decimal.Decimal):
    pass


class Moment(dt.datetime):
    pass


class Zone(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None, /) -> dt.timedelta:
        return dt.timedelta(0)

    def dst(self, when: dt.datetime | None, /) -> None: ...
    def tzname(self, when: dt.datetime | None, /) -> None: ...


class Opaque:
    def __repr__(self) -> str:
        raise AssertionError("asked for its text")


@dataclasses.dataclass
class Undeclared:
    n: int


class Point(NamedTuple):
    x: int


class Marked(Point):  # no __slots__: instances can hold more
    pass


class Base:
    __slots__ = ("extra",)
    extra: int


@dataclasses.dataclass
class Derived(Base):
    n: int


class Open(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        made = object.__new__(cls)
        made._name_, made._value_ = f"X{value}", value  # type: ignore[assignment]
        return made


TYPES = Types()
for declared in (Point, Marked, Derived, Open):
    TYPES.register(declared)


def _marked() -> Marked:
    value = Marked(1)
    value.note = "x"  # type: ignore[attr-defined]
    return value


def _derived() -> Derived:
    value = Derived(1)
    value.extra = 5
    return value


async def _coroutine() -> None: ...


PLAIN = "convert it to plain data before it crosses the boundary"
REGISTER = "agentloom.register"
TABLE: list[tuple[str, Callable[[], Any], str, str, str]] = [
    # name, value, what follows the path `call[0].x`, type, remedy
    ("object", Opaque, "", "test_refusals.Opaque", PLAIN),
    ("function", lambda: len, "", "builtin_function_or_method", PLAIN),
    ("lambda", lambda: lambda: 1, "", "function", PLAIN),
    ("class", lambda: int, "", "type", PLAIN),
    ("module", lambda: io, "", "module", PLAIN),
    ("generator", lambda: (n for n in "ab"), "", "generator", PLAIN),
    ("iterator", lambda: iter([1]), "", "list_iterator", PLAIN),
    ("view of keys", {"a": 1}.keys, "", "dict_keys", PLAIN),
    ("open file", io.StringIO, "", "_io.StringIO", PLAIN),
    ("database", lambda: sqlite3.connect(":memory:"), "", "sqlite3.Connection", PLAIN),
    ("lock", threading.Lock, "", "_thread.lock", PLAIN),
    ("event", asyncio.Event, "", "asyncio.locks.Event", PLAIN),
    ("pattern", lambda: re.compile("x"), "", "re.Pattern", PLAIN),
    ("partial", lambda: functools.partial(len), "", "functools.partial", PLAIN),
    ("weak reference", lambda: weakref.ref(Opaque), "", "weakref.ReferenceType", PLAIN),
    ("memory", lambda: memoryview(b"x"), "", "memoryview", PLAIN),
    ("array", lambda: array.array("i"), "", "array.array", PLAIN),
    ("ellipsis", lambda: ..., "", "ellipsis", PLAIN),
    ("context", decimal.Context, "", "decimal.Context", PLAIN),
    ("namespace", types.SimpleNamespace, "", "types.SimpleNamespace", PLAIN),
    ("mapping proxy", lambda: types.MappingProxyType({}), "", "mappingproxy", PLAIN),
    ("deque", collections.deque, "", "collections.deque", PLAIN),
    ("ordered dict", collections.OrderedDict, "", "collections.OrderedDict", PLAIN),
    ("default dict", lambda: collections.defaultdict(list), "", "collections.defaultdict", PLAIN),
    ("counter", collections.Counter, "", "collections.Counter", PLAIN),
    ("text of a subclass", lambda: Text("x"), "", "test_refusals.Text", PLAIN),
    ("number of a subclass", lambda: Money(1), "", "test_refusals.Money", PLAIN),
    ("moment of a subclass", lambda: Moment(2026, 1, 1), "", "test_refusals.Moment", PLAIN),
    ("zone of one's own", lambda: dt.datetime(2026, 1, 1, tzinfo=Zone()), "", "datetime.datetime", PLAIN),
    ("integer over the limit", lambda: 10**100_001, "", "int", PLAIN),
    ("dataclass", lambda: Undeclared(1), "", "test_refusals.Undeclared", REGISTER),
    ("key of a mapping", lambda: {Text("k"): 1}, "[key Text]", "test_refusals.Text", PLAIN),
    ("key deep in a key", lambda: {(1, (Text("k"),)): 1}, "[key tuple][1][0]", "test_refusals.Text", PLAIN),
    ("member of a set", lambda: {1, Text("k")}, "{}", "test_refusals.Text", PLAIN),
    ("item of a tuple", lambda: (1, [Opaque()]), "[1][0]", "test_refusals.Opaque", PLAIN),
    ("more than a named tuple", _marked, ".note", "test_refusals.Marked", REGISTER),
    ("more than a dataclass", _derived, ".extra", "test_refusals.Derived", REGISTER),
    ("made-up member of an Enum", lambda: Open(9), "", "test_refusals.Open", "plain data"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "path", "name", "remedy"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_refused_with_path_type_and_remedy(
    make: Callable[[], Any], path: str, name: str, remedy: str
) -> None:
    value = make()
    with pytest.raises(ValueRefused) as caught:
        encode({"call": [{"x": value}]}, TYPES)
    found = caught.value
    assert found.path == f"call[0].x{path}"
    assert found.type_name.endswith(name)
    assert remedy in str(found)


def test_a_coroutine_is_refused() -> None:
    coroutine = _coroutine()
    with pytest.raises(ValueRefused, match="coroutine"):
        encode([coroutine])
    coroutine.close()


def test_a_named_tuple_of_another_length_is_an_error() -> None:
    tree: Any = encode(Point(1), TYPES)
    tree["$obj"]["data"].append(2)
    with pytest.raises(Exception, match="Point has 1 fields now, and 2 were written"):
        decode(tree, TYPES)


def test_types_that_have_no_exact_form_cannot_be_registered() -> None:
    for cls in (Opaque, Text, Money, int, list, io.StringIO):
        with pytest.raises(
            ValueRefused, match="not an Enum, dataclass, pydantic model, NamedTuple or exception class"
        ):
            Types().register(cls)


def test_an_exception_is_never_refused_and_names_what_it_lost() -> None:
    looped = ValueError("x")
    looped.__cause__ = looped
    pair = ValueError("a"), TypeError("b")
    pair[0].__cause__, pair[1].__cause__ = pair[1], pair[0]
    itself = ValueError("x")
    itself.me = itself  # type: ignore[attr-defined]
    for error, lost in ((looped, ["__cause__"]), (itself, ["me"]), (ValueError(Opaque()), ["args[0]"])):
        tree: Any = encode(error, TYPES)
        assert tree["$error"]["lost"] == lost
        assert type(decode(tree, TYPES)) is type(error)
    whole: Any = encode(pair[0], TYPES)
    assert whole["$error"]["cause"]["$error"]["lost"] == ["__cause__"]


class Slotted(Exception):
    __slots__ = ("code",)
    code: int


class More(Slotted):
    __slots__ = ("_More__secret", "rest")
    rest: Any


def test_an_exception_keeps_what_it_holds_in_slots() -> None:
    error = More("text")
    error.code, error.rest = 7, [1]
    found: Any = decode(encode(error, TYPES), TYPES)
    assert (type(found), found.args, found.code, found.rest, vars(found)) == (More, ("text",), 7, [1], {})


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Open(9), "no member of its Enum, which made it up as it was asked for it"),
        (_marked, "an attribute that is not a field"),
        (_derived, "an attribute that is not a field"),
        (lambda: Undeclared(1), "a type that this program did not declare"),
    ],
    ids=["made up", "named tuple", "dataclass", "undeclared"],
)
def test_a_refusal_says_why(make: Callable[[], Any], reason: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        encode([make()], TYPES)
    assert caught.value.reason == reason
