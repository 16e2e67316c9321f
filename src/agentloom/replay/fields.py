"""Differences of two value trees by path: what changed, what was added or removed, and what is the same.

Equality is that of the format: ``1``, ``1.0`` and ``true`` differ; the order of a mapping differs only where the
caller asks (an output's bytes must be equal, a request's keys are sorted before they are compared).

The cost is bounded: equal parts are skipped at C speed, long lists are aligned by digest, and beyond ``limit``
differences the rest is only counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

import orjson

from agentloom.format.values import Tree
from agentloom.replay.align import align
from agentloom.replay.text import Line, clip, show
from agentloom.replay.textdiff import Hunk, hunk_lines, text_hunks

__all__ = ["Comparison", "Difference", "Kind", "compare", "join_path", "same_tree"]

Kind = Literal["changed", "added", "removed", "type", "order"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*\Z")
_LISTS = ("$tuple", "$set", "$frozenset")
_DEPTH = 100
_VISITS = 20_000
_SORTED = 10_000  # longer lists are not looked at for another order
_JSON_TEXT = 2000  # longer strings are cut in to_json
# Request fields of model calls that are named together as "parameters".
_PARAMETERS = frozenset(
    """model temperature top_p top_k seed response_format tool_choice max_tokens max_completion_tokens
    max_output_tokens stop n frequency_penalty presence_penalty logprobs top_logprobs reasoning reasoning_effort
    stream stream_options parallel_tool_calls""".split()
)


def same_tree(a: Tree, b: Tree, *, ordered: bool = False) -> bool:
    """Whether two trees are equal in value and type; with ``ordered`` also in the order of mappings."""
    if a is b:
        return True
    if a != b:
        return False
    if a is None or isinstance(a, str):
        return True
    option = 0 if ordered else orjson.OPT_SORT_KEYS
    return orjson.dumps(a, option=option) == orjson.dumps(b, option=option)


def join_path(path: str, step: str | int) -> str:
    """``messages`` + 0 -> ``messages[0]``; + ``content`` -> ``messages.content``; odd keys are quoted."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if not _NAME.match(step):
        return f"{path}[{orjson.dumps(step[:60]).decode()}]"
    return f"{path}.{step}" if path else step


@dataclass(frozen=True, slots=True)
class Difference:
    """One differing field. ``path`` is its place now (for ``removed``: when recorded)."""

    path: str
    kind: Kind
    recorded: Tree = None
    now: Tree = None
    hunks: tuple[Hunk, ...] = ()
    hunk_count: int = 0
    recorded_path: str | None = None

    def lines(self, width: int = 100, rows: int = 3) -> list[Line]:
        """One line where both values are short, otherwise ``-``/``+`` lines under the path."""
        if self.hunks and not self._short():
            out: list[Line] = [[("", "  "), *piece] for piece in hunk_lines(self.hunks[0], width - 4, rows)]
            more = self.hunk_count - 1
            words = f"  {more:,} more change{'s' if more > 1 else ''} in this text"
            return [*out, [("dim", words)]] if more else out
        if self.kind == "added":
            return [[("", "  "), ("new", f"+ {show(self.now, width - 4)}")]]
        if self.kind == "removed":
            return [[("", "  "), ("old", f"- {show(self.recorded, width - 4)}")]]
        half = max(12, (width - len(self.path) - 8) // 2)
        old, new = show(self.recorded, half), show(self.now, half)
        if self.kind == "type":
            old, new = f"{_type_name(self.recorded)} {old}", f"{_type_name(self.now)} {new}"
        if self.kind == "order":
            old, new = f"order {_order(self.recorded)}", _order(self.now)
        if len(old) + len(new) + 4 > width - 4:
            return [[("", "  "), ("old", f"- {old}")], [("", "  "), ("new", f"+ {new}")]]
        return [[("", "  "), ("old", old), ("", " -> "), ("new", new)]]

    def inline(self) -> bool:
        """Whether :meth:`lines` is a single ``old -> new`` line, to be shown beside the path."""
        return self.kind in ("changed", "type", "order") and (not self.hunks or self._short())

    def _short(self) -> bool:
        pair = (self.recorded, self.now)
        return all(isinstance(text, str) and len(text) <= 32 and text.isprintable() for text in pair)

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON; texts over 2,000 characters and large values are cut and say so."""
        out: dict[str, Tree] = {"path": self.path, "kind": self.kind}
        if self.recorded_path is not None:
            out["recorded_path"] = self.recorded_path
        if self.kind != "added":
            out["recorded"] = _bounded(self.recorded)
        if self.kind != "removed":
            out["now"] = _bounded(self.now)
        if self.hunks:
            out["spans"] = [
                {
                    "before": h.before,
                    "recorded": h.old[:_JSON_TEXT],
                    "now": h.new[:_JSON_TEXT],
                    "after": h.after,
                }
                for h in self.hunks
            ]
            out["span_count"] = self.hunk_count
        return out


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences of two trees: the first ``limit`` of ``total``, and words for what is the same.

    ``complete`` is False when the bounded walk stopped early: then ``total`` is a lower bound.
    """

    items: tuple[Difference, ...]
    total: int
    same: tuple[str, ...] = ()
    complete: bool = True

    def __bool__(self) -> bool:
        return self.total > 0


@dataclass(slots=True)
class _Walk:
    limit: int
    ordered: bool
    items: list[Difference] = field(default_factory=list[Difference])
    total: int = 0
    visits: int = 0

    def add(self, difference: Difference) -> None:
        self.total += 1
        if len(self.items) < self.limit:
            self.items.append(difference)

    def differ(
        self,
        path: str,
        rpath: str,
        kind: Kind,
        a: Tree,
        b: Tree,
        hunks: tuple[Hunk, ...] = (),
        count: int = 0,
    ) -> None:
        self.add(Difference(path, kind, a, b, hunks, count, rpath if rpath != path else None))

    def compare(self, path: str, rpath: str, a: Tree, b: Tree, depth: int) -> None:
        if self.total > self.limit * 4 or self.visits > _VISITS:
            return
        self.visits += 1
        if same_tree(a, b, ordered=self.ordered):
            return
        kind_a, inner_a = _open(a)
        kind_b, inner_b = _open(b)
        if kind_a != kind_b or depth > _DEPTH:
            odd = kind_a != kind_b and a is not None and b is not None
            self.leaf(path, rpath, a, b, "type" if odd else "changed")
        elif isinstance(inner_a, dict) and isinstance(inner_b, dict):
            self.mapping(path, rpath, inner_a, inner_b, depth)
        elif isinstance(inner_a, list) and isinstance(inner_b, list):
            self.sequence(path, rpath, inner_a, inner_b, depth)
        else:
            self.leaf(path, rpath, a, b, "changed")

    def leaf(self, path: str, rpath: str, a: Tree, b: Tree, kind: Kind) -> None:
        hunks: list[Hunk] = []
        count = 0
        if len(self.items) < self.limit and kind == "changed" and isinstance(a, str) and isinstance(b, str):
            hunks, count = text_hunks(a, b)
        self.differ(path, rpath, kind, a, b, tuple(hunks), count)

    def mapping(self, path: str, rpath: str, a: dict[str, Tree], b: dict[str, Tree], depth: int) -> None:
        before = self.total
        for key, value in a.items():
            if key in b:
                self.compare(join_path(path, key), join_path(rpath, key), value, b[key], depth + 1)
            else:
                self.add(Difference(join_path(rpath, key), "removed", recorded=value))
        for key, value in b.items():
            if key not in a:
                self.add(Difference(join_path(path, key), "added", now=value))
        if self.ordered and self.total == before and list(a) != list(b):
            self.differ(path, rpath, "order", list(a), list(b))

    def sequence(self, path: str, rpath: str, a: list[Tree], b: list[Tree], depth: int) -> None:
        if _permuted(a, b, self.ordered):
            self.differ(path, rpath, "order", a, b)
            return
        for i, j in align(a, b, lambda x, y: same_tree(x, y, ordered=self.ordered), ordered=self.ordered):
            if i is not None and j is not None:
                self.compare(join_path(path, j), join_path(rpath, i), a[i], b[j], depth + 1)
            elif i is not None:
                self.add(Difference(join_path(rpath, i), "removed", recorded=a[i]))
            elif j is not None:
                self.add(Difference(join_path(path, j), "added", now=b[j]))


def compare(
    recorded: Tree, now: Tree, *, limit: int = 40, ordered: bool = False, root: str = ""
) -> Comparison:
    """Differences from ``recorded`` to ``now``; ``root`` is the path of the whole value (``output``)."""
    walk = _Walk(limit, ordered)
    walk.compare(root, root, recorded, now, 0)
    complete = walk.visits <= _VISITS and walk.total <= limit * 4
    return Comparison(tuple(walk.items), walk.total, tuple(_same_words(recorded, now)), complete)


def _open(tree: Tree) -> tuple[str, Tree]:
    """A tree's kind and, for containers (tagged ones too), the list or mapping inside."""
    if isinstance(tree, list):
        return "list", tree
    if isinstance(tree, dict):
        if len(tree) == 1:
            tag, value = next(iter(tree.items()))
            if tag in _LISTS:
                return tag, value
            if tag == "$obj" and isinstance(value, dict):
                return f"$obj {value.get('type')}", value.get("data")
            if tag == "$map" and isinstance(value, list):
                return "$map", _map_as_dict(value)
            if tag.startswith("$"):
                return tag, value
        return "dict", tree
    return _type_name(tree), tree


def _map_as_dict(pairs: list[Tree]) -> Tree:
    out: dict[str, Tree] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            return pairs
        key = pair[0] if isinstance(pair[0], str) else orjson.dumps(pair[0]).decode()
        out[key] = pair[1]
    return out


def _type_name(tree: Tree) -> str:
    if isinstance(tree, dict):
        tag = next(iter(tree), "")
        return tag[1:] if len(tree) == 1 and tag.startswith("$") else "dict"
    return "null" if tree is None else type(tree).__name__


def _permuted(a: list[Tree], b: list[Tree], ordered: bool) -> bool:
    if len(a) != len(b) or len(a) > _SORTED:
        return False
    option = 0 if ordered else orjson.OPT_SORT_KEYS
    return sorted(orjson.dumps(item, option=option) for item in a) == sorted(
        orjson.dumps(item, option=option) for item in b
    )


def _order(tree: Tree) -> str:
    items = cast("list[Tree]", tree)
    text = ", ".join(_name_of(item) for item in items[:6])
    return clip(text + (", ..." if len(items) > 6 else ""), 60)


def _name_of(item: Tree) -> str:
    """What tells an item of a list from its neighbours: a tool's name, a message's role and text, a name, an id."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        inner = item.get("function")
        named = inner if isinstance(inner, dict) else item
        if "role" in item:
            return f"{item['role']} {show(item.get('content'), 20)}"
        for key in ("name", "id"):
            if isinstance(named.get(key), str):
                return str(named[key])
    return show(item, 20)


def _bounded(tree: Tree) -> Tree:
    if isinstance(tree, str):
        return tree if len(tree) <= _JSON_TEXT else tree[:_JSON_TEXT] + f"... ({len(tree):,} characters)"
    size = len(orjson.dumps(tree))
    return tree if size <= 2 * _JSON_TEXT else {"$cut": show(tree, _JSON_TEXT), "bytes": size}


def _same_words(a: Tree, b: Tree) -> Iterator[str]:
    """Words for the equal parts beside the first differing one: ``100 earlier messages``, ``tools``."""
    for _ in range(4):  # follow the one differing field down to where siblings are worth naming
        if not (isinstance(a, dict) and isinstance(b, dict)):
            return
        equal = [key for key in a if key in b and same_tree(a[key], b[key])]
        differing = [key for key in a if key in b and key not in equal]
        for key in differing:
            yield from _same_items(key, a[key], b[key])
        plain = [key for key in equal if key not in _PARAMETERS]
        yield from plain[:5]
        if len(plain) > 5:
            yield f"{len(plain) - 5} more field{'s' if len(plain) > 6 else ''}"
        if len(plain) < len(equal):
            yield "parameters"
        if equal or len(differing) != 1:
            return
        a, b = a[differing[0]], b[differing[0]]


def _same_items(key: str, a: Tree, b: Tree) -> Iterator[str]:
    if not (isinstance(a, list) and isinstance(b, list)):
        return
    limit = min(len(a), len(b))
    head = 0
    while head < limit and same_tree(a[head], b[head]):
        head += 1
    tail = 0
    while tail < limit - head and same_tree(a[-1 - tail], b[-1 - tail]):
        tail += 1
    for count, word in ((head, "earlier"), (tail, "later")):
        if count:
            key = "items" if key.startswith("$") else key
            name = key[:-1] if count == 1 and key.endswith("s") else key
            yield f"{count:,} {word} {name}"
