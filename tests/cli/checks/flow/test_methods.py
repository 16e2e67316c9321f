"""Methods."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import names

TABLE = "from collections import defaultdict\nclass Box:\n    def all(self): return set('ab')"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("groups = defaultdict(set)\ngroups['a'].add(given)\nsearch(list(groups['a']))", ["set-order"]),
        ("groups: dict[str, set[str]] = {}\nfor k, v in groups.items(): pass\nsearch(given)", []),
        ("search(' '.join(Box().all()))", ["set-order"]),
        ("search(list(given.keys()))", []),
        ("search(list(given.keys() | {1: 2}.keys()))", ["set-order"]),
        ("search(tags.copy())", []),
        ("text = str(tags).strip().upper()\nsearch(text)", ["set-order"]),
        ("search(open_file.read(str(tags)))", []),
        ("tags.add(given)\nsearch(sorted(tags))", []),
        ("out = []\nout.append(str(tags))\nsearch(out)", ["set-order"]),
        ("search({'a': str(tags)}.get('b'))", ["set-order"]),
    ],
)
def test_methods(body: str, found: list[str]) -> None:
    assert names(body, before=TABLE) == found
