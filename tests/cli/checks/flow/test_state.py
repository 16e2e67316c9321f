"""What one run leaves behind for the next."""

from __future__ import annotations

import ast

import pytest

from agentloom.cli.checks.flow.state import is_mutable, reads
from tests.cli.checks.flow.agents import names, of_agent


@pytest.mark.parametrize(
    ("before", "body", "name"),
    [
        ("SEEN = []", "SEEN.append(given)\nsearch(SEEN)", "global-state"),
        ("SEEN = {}", "SEEN[given] = 1\nsearch(SEEN)", "global-state"),
        ("SEEN = []", "global SEEN\nSEEN = [*SEEN, given]\nsearch(SEEN)", "global-state"),
        ("N = 0", "global N\nN += 1\nsearch(N)", "counter"),
        ("import itertools\nIDS = itertools.count()", "search(next(IDS))", "counter"),
        ("class T: n = 0", "T.n += 1\nsearch(T.n)", "counter"),
        ("MEMO = {}", "if given not in MEMO: MEMO[given] = search(given)\nreturn MEMO[given]", "cache"),
        ("def f(x, seen=[]):\n    seen.append(x)\n    return seen", "search(f(given))", "mutable-default"),
        (
            "class T:\n    items = []\n    def add(self, x): self.items.append(x)",
            "T().add(given)",
            "global-state",
        ),
    ],
)
def test_found(before: str, body: str, name: str) -> None:
    assert names(body, before=before) == [name]


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("SEEN = []", "SEEN = []\nSEEN.append(given)\nsearch(SEEN)"),
        ("SEEN = []", "SEEN.append(given)"),
        ("N = 0", "global N\nN += 1"),
        ("TABLE = {'a': 1}", "search(TABLE[given])"),
        ("import itertools", "ids = itertools.count()\nsearch(next(ids))"),
        ("def f(x, seen=()): return [*seen, x]", "search(f(given))"),
        ("def f(x, seen=None):\n    seen = seen or []\n    seen.append(x)\n    return seen", "search(f(given))"),
        ("class T:\n    def __init__(self): self.items = []\n    def add(self, x): self.items.append(x)",
        "T().add(given)"),
    ],
)  # fmt: skip
def test_clean(before: str, body: str) -> None:
    assert names(body, before=before) == []


def test_a_cache_in_front_of_a_tool_and_behind_it() -> None:
    in_front = "import functools\n@functools.lru_cache\n@tool\ndef rate(x): return x"
    behind = "import functools\n@tool\n@functools.lru_cache\ndef rate(x): return x"
    assert names("rate(given)", before=in_front) == ["cache"]
    assert names("rate(given)", before=behind) == []
    around = "import functools\n@functools.cache\ndef rate(x): return search(x)"
    assert of_agent("rate(given)", before=around) == [(-3, "cache")]
    pure = "import functools\n@functools.cache\ndef rate(x): return x * 2"
    assert names("search(rate(given))", before=pure) == []


def test_what_is_read_and_what_makes_a_container() -> None:
    assert reads(ast.parse("a.append(b)\nc[d] = e\nf = g")) == {"b", "d", "e", "g"}
    assert [is_mutable(ast.parse(text, mode="eval").body) for text in ("[]", "dict()", "1", "()", "f()")] == [
        True, True, False, False, False,
    ]  # fmt: skip
