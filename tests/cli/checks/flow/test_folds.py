"""What is put together from a set, or taken from one that was put in order."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import names

HEAD = "import functools, heapq, operator, math"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("functools.reduce(lambda a, b: a + b, tags)", ["set-order"]),
        ("functools.reduce(lambda a, b: f'{a} {b}', tags, '')", ["set-order"]),
        ("functools.reduce(operator.add, tags)", ["set-order"]),
        ("functools.reduce(given, tags)", ["set-order"]),
        ("functools.reduce(operator.or_, tags)", []),
        ("functools.reduce(max, tags)", []),
        ("functools.reduce(lambda a, b: max(a, len(b)), tags, 0)", []),
        ("functools.reduce(lambda a, b: a + len(b), tags, 0)", []),
        ("functools.reduce(lambda a, b: a | b, tags)", []),
        ("functools.reduce(lambda a, b: a + b, sorted(tags))", []),
        ("heapq.nlargest(2, tags, key=len)", ["set-order"]),
        ("heapq.nsmallest(2, tags)", []),
        ("heapq.nlargest(2, sorted(tags), key=len)", []),
        ("heapq.heappop(list(tags))", []),
        ("list(heapq.merge(tags, given))", ["set-order"]),
    ],
)
def test_folds(body: str, found: list[str]) -> None:
    assert names(f"return search({body})", before=HEAD) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("sorted(given, key=hash)", ["hash"]),
        ("given.sort(key=id)", ["address"]),
        ("max(given, key=hash)", ["hash"]),
        ("list(map(hash, given))", ["hash"]),
        ("sorted(given, key=len)", []),
    ],
)
def test_functions_of_the_process_that_are_handed_on(body: str, found: list[str]) -> None:
    assert names(f"return search({body})") == found


def test_a_parameter_of_that_name_is_none() -> None:
    helper = "def by(items, hash, id): return sorted(sorted(items, key=hash), key=id)"
    assert names("return search(by(given, str, len))", before=helper) == []
