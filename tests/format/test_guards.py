"""Exact types of containers, tags, and the slots of classes."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from typing import Any

import pytest

from agentloom.format.guards import class_of, is_container, is_list, is_map, slots_of, tag_of


class Names(list[Any]):
    pass


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ([], "list"),
        ({}, "map"),
        (Names(), ""),
        (OrderedDict(), ""),
        (UserDict(), ""),
        ((), ""),
        ("", ""),
        (None, ""),
    ],
    ids=str,
)
def test_containers_are_of_exactly_two_types(item: object, kind: str) -> None:
    assert (is_list(item), is_map(item), is_container(item)) == (kind == "list", kind == "map", kind != "")
    assert class_of(item) is type(item)


@pytest.mark.parametrize(
    ("item", "tag"),
    [
        ({"$a": 1}, ("$a", 1)),
        ({"$": None}, ("$", None)),
        ({"a$": 1}, None),
        ({"": 1}, None),
        ({"$a": 1, "$b": 2}, None),
        ({}, None),
        (["$a"], None),
        ("$a", None),
    ],
    ids=str,
)
def test_a_tag_is_the_only_key_of_a_mapping(item: object, tag: Any) -> None:
    assert tag_of(item) == tag


class First:
    __slots__ = ("__dunder__", "__hidden", "plain")


class _Under(First):
    __slots__ = "__one"  # noqa: PLC0205 - one name as text is one slot


class XUnder:
    __slots__ = ("__one",)


class Plain(_Under):
    __slots__ = ()


class Odd(Plain):
    __slots__ = ("gone",)


delattr(Odd, "gone")


def test_slots_are_named_as_python_keeps_them() -> None:
    assert set(slots_of(First)) == {"_First__hidden", "__dunder__", "plain"}
    assert slots_of(XUnder) == ("_XUnder__one",)
    assert slots_of(_Under)[0] == "_Under__one"
    assert set(slots_of(Plain)) == {"_Under__one", *slots_of(First)}
    assert slots_of(Odd) == slots_of(Plain)  # a slot that was taken away holds nothing
    assert slots_of(Plain) is slots_of(Plain)
    assert slots_of(Names) == ()
