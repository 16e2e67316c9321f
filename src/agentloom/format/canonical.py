"""JSON text of trees: as written (``dump``), canonical (``canonical``), and strict reading (``load``).

orjson does the work. What it does silently wrong (``findings``: NaN becomes null, 2**70 becomes a float, duplicate keys
vanish) is caught here: a text that orjson would write differently from what it read takes a slow, exact path.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from agentloom.errors import FormatError, ValueRefused
from agentloom.format.guards import is_container, is_list, is_map
from agentloom.format.limits import INT_MAX, INT_MIN, LINE_DEPTH

__all__ = ["EXACT", "Tree", "canonical", "dump", "float_text", "floats", "load", "too_deep"]

Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]
"""Plain JSON in which tagged objects stand for what JSON lacks (docs/trace-format.md, Values)."""

EXACT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SORTED = EXACT | orjson.OPT_SORT_KEYS
_CONTAINERS = (dict, list)
_MAP_TAG = re.compile(rb'\{"\$map":')

# The canonical form is the specification's, not "what orjson does": an orjson that formats one of these numbers in
# another way is not used for canonical text.
_PROBES: tuple[tuple[float, bytes], ...] = (
    (0.0, b"0.0"),
    (-0.0, b"-0.0"),
    (1e15, b"1000000000000000.0"),
    (1e16, b"1e+16"),
    (1.5e300, b"1.5e+300"),
    (123456789012345.67, b"123456789012345.67"),
    (1e-5, b"0.00001"),
    (1.5e-6, b"1.5e-6"),
    (5e-324, b"5e-324"),
    (0.1, b"0.1"),
)
_ORJSON_IS_CANONICAL = all(orjson.dumps(number) == text for number, text in _PROBES)


def dump(tree: Tree) -> bytes:
    """Compact JSON in insertion order. Raises ``ValueRefused`` for what is not a tree (NaN, other types, too deep)."""
    try:
        data = orjson.dumps(tree, option=EXACT)
    except TypeError as error:
        raise ValueRefused("value", type(tree).__name__, f"not a tree: {error}") from error
    if b"null" in data and orjson.loads(data) != tree:  # NaN and infinities are written as null
        _refuse_nan(tree)
    if len(data) >= 2 * LINE_DEPTH and too_deep(tree):
        raise ValueRefused("value", type(tree).__name__, f"more than {LINE_DEPTH} levels deep")
    return data


def canonical(tree: Tree) -> bytes:
    """The canonical form: compact JSON, object keys sorted by code point, ``$map`` pairs sorted by their key's text.

    1, 1.0 and true have three different forms. The input of request keys and the sort order of sets.
    """
    if not _ORJSON_IS_CANONICAL:
        return _write(tree).encode()
    try:
        data = orjson.dumps(tree, option=_SORTED)
    except TypeError as error:
        raise ValueRefused("value", type(tree).__name__, f"not a tree: {error}") from error
    if b"$" in data and _MAP_TAG.search(data):
        return _write(tree).encode()
    return data


def load(data: bytes) -> Tree:
    """Strict JSON. ``FormatError`` for duplicate keys, NaN, integers over 64 bits, lone surrogates, too much depth."""
    try:
        tree: Tree = orjson.loads(data)
    except ValueError as error:
        raise FormatError("json.syntax", f"not JSON: {error}") from error
    if len(data) >= 2 * LINE_DEPTH and data.count(b"[") + data.count(b"{") > LINE_DEPTH and too_deep(tree):
        raise FormatError("json.depth", f"more than {LINE_DEPTH} levels of nested arrays and objects")
    if orjson.dumps(tree) != data:
        _look_closer(data)
    return tree


def too_deep(tree: Tree) -> bool:
    """Whether lists and mappings nest more than ``LINE_DEPTH`` levels."""
    level: list[Any] = [tree] if is_container(tree) else []
    for _ in range(LINE_DEPTH):
        below: list[Any] = []
        for container in level:
            children: Iterable[Any] = container.values() if is_map(container) else container
            below += [child for child in children if type(child) in _CONTAINERS]
        if not below:
            return False
        level = below
    return True


def _look_closer(data: bytes) -> None:
    """Look at a text that is not in the writer's own form: other spacing and number spellings are fine."""
    json.loads(data.decode(), parse_int=_integer, object_pairs_hook=_distinct_pairs)


def _integer(digits: str) -> int:
    if len(digits) > 20 or not INT_MIN <= int(digits) <= INT_MAX:
        raise FormatError("json.number", f"the integer {digits[:24]} is outside -2^63..2^64-1")
    return int(digits)


def _distinct_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise FormatError("json.duplicate", f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return mapping


def floats(tree: Tree) -> Iterator[float]:
    """Every floating-point number in the tree, in no promised order."""
    todo: list[Any] = [tree]
    while todo:
        item = todo.pop()
        if is_map(item):
            todo.extend(item.values())
        elif is_list(item):
            todo.extend(item)
        elif type(item) is float:
            yield item


def _refuse_nan(tree: Tree) -> None:
    for number in floats(tree):
        if not math.isfinite(number):
            raise ValueRefused("value", "float", f'{number} has no JSON form; write {{"$float": ...}}')


def float_text(number: float) -> str:
    """Canonical text of a finite float: the shortest digits that read back to the same bits, as ``repr`` finds them.

    ``repr`` writes plain notation from 1e-4 on and below 1e16, with a point; canonical text from 1e-5 on. The rule is
    in docs/trace-format.md, Canonical form.
    """
    mantissa, _, exponent = repr(number).partition("e")
    if exponent == "-05":
        sign = "-" if number < 0 else ""
        return f"{sign}0.0000{mantissa.removeprefix('-').replace('.', '')}"
    return f"{mantissa}e{int(exponent):+}" if exponent else mantissa


def _write(tree: Tree) -> str:
    if tree is None or type(tree) is bool or type(tree) is str:
        return json.dumps(tree, ensure_ascii=False)
    if type(tree) is int:
        return str(tree)
    if type(tree) is float:
        return float_text(tree)
    if type(tree) is list:
        return f"[{','.join(_write(item) for item in tree)}]"
    if type(tree) is not dict:
        raise ValueRefused("value", type(tree).__name__, "not a tree")
    pairs = tree.get("$map") if len(tree) == 1 else None
    if type(pairs) is list:
        written = sorted(f"[{','.join(_write(part) for part in _pair(pair))}]" for pair in pairs)
        return f'{{"$map":[{",".join(written)}]}}'
    return f"{{{','.join(f'{_write(key)}:{_write(tree[key])}' for key in sorted(tree))}}}"


def _pair(pair: Tree) -> list[Tree]:
    if type(pair) is list and len(pair) == 2:
        return pair
    raise ValueRefused("value", type(pair).__name__, "$map holds [key, value] pairs")
