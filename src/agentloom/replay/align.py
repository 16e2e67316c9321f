"""Alignment of two lists, so that an item put in the middle is one insertion and not n changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

import orjson

from agentloom.format.values import Tree

__all__ = ["Pair", "align", "align_keys"]

Pair = tuple[int | None, int | None]
_ALIGNED = 2000  # longer middles are compared by position
_PAIRED = 24  # larger replaced blocks are paired by position


def align(
    a: Sequence[Tree], b: Sequence[Tree], same: Callable[[Tree, Tree], bool], *, ordered: bool = False
) -> list[Pair]:
    """Pairs of indexes that differ: ``(i, j)`` changed, ``(i, None)`` removed, ``(None, j)`` added.

    ``ordered``: the order of mappings counts, as it does in ``same``.
    """
    head, limit = 0, min(len(a), len(b))
    while head < limit and same(a[head], b[head]):
        head += 1
    tail = 0
    while tail < limit - head and same(a[-1 - tail], b[-1 - tail]):
        tail += 1
    middle_a, middle_b = len(a) - head - tail, len(b) - head - tail
    if max(middle_a, middle_b) > _ALIGNED:
        return _by_position(head, middle_a, middle_b)
    if middle_a <= 1 and middle_b <= 1:
        return _by_position(head, middle_a, middle_b)
    option = 0 if ordered else orjson.OPT_SORT_KEYS
    keys_a = [orjson.dumps(item, option=option) for item in a[head : len(a) - tail]]
    keys_b = [orjson.dumps(item, option=option) for item in b[head : len(b) - tail]]
    out: list[Pair] = []
    for tag, i, j, k, m in SequenceMatcher(None, keys_a, keys_b, autojunk=False).get_opcodes():
        if tag != "equal":
            out += _replaced(a, b, (head + i, head + j), (head + k, head + m))
    return out


def align_keys(a: Sequence[str], b: Sequence[str]) -> list[Pair]:
    """All pairs of two sequences of keys in order, equal ones included; cost bounded by stripping common ends first."""
    head, limit = 0, min(len(a), len(b))
    while head < limit and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < limit - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    out: list[Pair] = [(i, i) for i in range(head)]
    end_a, end_b = len(a) - tail, len(b) - tail
    if max(end_a, end_b) - head > _ALIGNED:
        out += _only(head, end_a, head, end_b)
    else:
        matcher = SequenceMatcher(None, a[head:end_a], b[head:end_b], autojunk=False)
        for tag, i, j, k, m in matcher.get_opcodes():
            if tag == "equal":
                out += [(head + i + n, head + k + n) for n in range(j - i)]
            else:
                out += _only(head + i, head + j, head + k, head + m)
    return out + [(end_a + n, end_b + n) for n in range(tail)]


def _only(i: int, j: int, k: int, m: int) -> list[Pair]:
    return [*((n, None) for n in range(i, j)), *((None, n) for n in range(k, m))]


def _by_position(head: int, middle_a: int, middle_b: int) -> list[Pair]:
    common = min(middle_a, middle_b)
    pairs: list[Pair] = [(head + n, head + n) for n in range(common)]
    return pairs + _only(head + common, head + middle_a, head + common, head + middle_b)


def _replaced(
    a: Sequence[Tree], b: Sequence[Tree], rows: tuple[int, int], columns: tuple[int, int]
) -> list[Pair]:
    """Pair the items of a replaced block in order so that the most similar ones meet."""
    height, width = rows[1] - rows[0], columns[1] - columns[0]
    if height == width or max(height, width) > _PAIRED:
        common = min(height, width)
        pairs: list[Pair] = [(rows[0] + n, columns[0] + n) for n in range(common)]
        return pairs + _only(rows[0] + common, rows[1], columns[0] + common, columns[1])
    score = [[0.0] * (width + 1) for _ in range(height + 1)]
    for i in range(height - 1, -1, -1):
        for j in range(width - 1, -1, -1):
            here = _alike(a[rows[0] + i], b[columns[0] + j]) + score[i + 1][j + 1]
            score[i][j] = max(here, score[i + 1][j], score[i][j + 1])
    out: list[Pair] = []
    i = j = 0
    while i < height and j < width:
        if score[i][j] == _alike(a[rows[0] + i], b[columns[0] + j]) + score[i + 1][j + 1]:
            out.append((rows[0] + i, columns[0] + j))
            i, j = i + 1, j + 1
        elif score[i][j] == score[i + 1][j]:
            out.append((rows[0] + i, None))
            i += 1
        else:
            out.append((None, columns[0] + j))
            j += 1
    return out + _only(rows[0] + i, rows[1], columns[0] + j, columns[1])


def _alike(a: Tree, b: Tree) -> float:
    """A cheap similarity from 0 to 1: shared fields of mappings, shared ends of texts."""
    if type(a) is not type(b):
        return 0.0
    if isinstance(a, dict) and isinstance(b, dict):
        if not a or not b:
            return 0.1
        shared = sum(1.0 if a[key] == b[key] else 0.2 * _alike(a[key], b[key]) for key in a if key in b)
        return shared / max(len(a), len(b))
    if isinstance(a, str) and isinstance(b, str):
        size = min(len(a), len(b), 200)
        common = 0
        while common < size and a[common] == b[common]:
            common += 1
        return common / max(1, min(200, max(len(a), len(b))))
    return 0.1
