"""The values of expressions."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import names


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("search(str(tags) if given else '')", ["set-order"]),
        ("search(given or str(tags))", ["set-order"]),
        ("search((text := str(tags)))\nsearch(text)", ["set-order"]),
        ("search([str(tags)][0])", ["set-order"]),
        ("search({'a': str(tags)}['a'])", ["set-order"]),
        ("search(str(tags) == given)", []),
        ("search(not str(tags))", []),
        ("search((lambda x: x)(given))", []),
        ("search('a' + str(tags))", ["set-order"]),
        ("search(str(tags)[1:])", ["set-order"]),
        ("search([x for y in [tags] for x in y])", ["set-order"]),
        ("search({**{'a': str(tags)}})", ["set-order"]),
        ("search(f'{1000:n}')", ["locale"]),
        ("search(f'{given:%H:%M}')", []),
    ],
)
def test_expressions(body: str, found: list[str]) -> None:
    assert names(body) == found


def test_names_that_were_imported_from_time() -> None:
    assert names("search(tzname)", before="from time import tzname") == ["time-zone"]
    assert names("search(time.tzname)", before="import time") == []
