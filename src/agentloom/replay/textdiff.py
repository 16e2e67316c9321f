"""What changed inside a text: hunks of words with context, at a bounded cost for texts of any length."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentloom.replay.text import ELLIPSIS, Line, one_line

__all__ = ["Hunk", "hunk_lines", "text_hunks"]

CONTEXT = 200  # characters of common text kept on each side of a hunk
_TOKENS = 1200  # tokens on each side up to which words (then lines) are aligned; beyond that: one hunk
_SHORT = 100  # texts of at most this many characters are shown as one hunk
_GAP = 12  # hunks closer than this many characters are shown as one
_WORD = re.compile(r"[\w\-]+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Hunk:
    """One changed span: ``before`` + ``old`` + ``after`` when recorded, ``before`` + ``new`` + ``after`` now."""

    before: str
    old: str
    new: str
    after: str
    clipped_before: bool = False
    clipped_after: bool = False


def text_hunks(old: str, new: str, limit: int = 8) -> tuple[list[Hunk], int]:
    """The changed spans of two different texts, in order, at most ``limit``; and how many there are in all."""
    start = _snap_left(old, new, _common_prefix(old, new))
    tail = _common_suffix(old[start:], new[start:])
    tail = _snap_right(old, new, start, tail)
    spans = _merge(
        _spans(old[start : len(old) - tail], new[start : len(new) - tail]),
        gap=_SHORT if max(len(old), len(new)) <= _SHORT else _GAP,
    )
    hunks: list[Hunk] = []
    for number, (a, b, c, d) in enumerate(spans[:limit]):
        # Context is common text: it ends where the next change begins.
        least = start + spans[number - 1][1] if number else 0
        most = start + spans[number + 1][0] if number + 1 < len(spans) else len(old)
        hunks.append(_hunk(old, new, (start + a, start + b, start + c, start + d), (least, most)))
    return hunks, len(spans)


def _common_prefix(old: str, new: str) -> int:
    """By doubling and halving over slices, so that long common parts cost C speed."""
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while high - low > 1:
        mid = (low + high) // 2
        if old[low:mid] == new[low:mid]:
            low = mid
        else:
            high = mid
    return low


def _common_suffix(old: str, new: str) -> int:
    limit = min(len(old), len(new))
    if limit == 0:
        return 0
    return _common_prefix(old[len(old) - limit :][::-1], new[len(new) - limit :][::-1])


def _wordish(char: str) -> bool:
    return char.isalnum() or char in "_-"


def _snap_left(old: str, new: str, at: int) -> int:
    """Move a boundary left so that it does not cut a word (at most 64 characters)."""
    stop = max(0, at - 64)
    following = old[at : at + 1] + new[at : at + 1]
    if not any(_wordish(char) for char in following):
        return at
    where = at
    while where > stop and _wordish(old[where - 1]):
        where -= 1
    return where if where > stop or where == 0 else at


def _snap_right(old: str, new: str, start: int, tail: int) -> int:
    preceding = old[max(start, len(old) - tail - 1) : len(old) - tail]
    preceding += new[max(start, len(new) - tail - 1) : len(new) - tail]
    if not any(_wordish(char) for char in preceding):
        return tail
    where, stop = tail, max(0, tail - 64)
    while where > stop and _wordish(old[len(old) - where]):
        where -= 1
    return where if where > stop or where == 0 else tail


def _spans(old: str, new: str) -> list[tuple[int, int, int, int]]:
    """Changed spans ``(old start, old end, new start, new end)`` of the middle part."""
    whole = [(0, len(old), 0, len(new))]
    if not old or not new:
        return whole
    a, b = _WORD.findall(old[: _TOKENS * 12]), _WORD.findall(new[: _TOKENS * 12])
    if len(old) > _TOKENS * 12 or len(new) > _TOKENS * 12 or max(len(a), len(b)) > _TOKENS:
        a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
        if max(len(a), len(b)) > _TOKENS:
            return whole
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    ends_a, ends_b = _offsets(a), _offsets(b)
    spans = [(ends_a[i], ends_a[j], ends_b[k], ends_b[m]) for tag, i, j, k, m in codes if tag != "equal"]
    kept = sum(ends_a[j] - ends_a[i] for tag, i, j, _, _ in codes if tag == "equal")
    # Texts that share only scattered words and blanks are replaced, not edited.
    return spans if kept * 3 >= min(len(old), len(new)) else whole


def _offsets(tokens: list[str]) -> list[int]:
    out = [0]
    for token in tokens:
        out.append(out[-1] + len(token))
    return out


def _merge(spans: list[tuple[int, int, int, int]], *, gap: int) -> list[tuple[int, int, int, int]]:
    merged: list[tuple[int, int, int, int]] = []
    for span in spans:
        if merged and span[0] - merged[-1][1] < gap and span[2] - merged[-1][3] < gap:
            merged[-1] = (merged[-1][0], span[1], merged[-1][2], span[3])
        else:
            merged.append(span)
    return merged


def _hunk(old: str, new: str, span: tuple[int, int, int, int], bounds: tuple[int, int]) -> Hunk:
    """The hunk of ``span``, its context within ``bounds`` of the old text."""
    a, b, c, d = span
    left, right = max(bounds[0], a - CONTEXT), min(bounds[1], b + CONTEXT)
    before, after = old[left:a], old[b:right]
    clipped_before, clipped_after = left > 0, right < len(old)
    if "\n" in before:  # context stays within the line
        before, clipped_before = before.rpartition("\n")[2], False
    if "\n" in after:
        after, clipped_after = after.partition("\n")[0], False
    return Hunk(before, old[a:b], new[c:d], after, clipped_before, clipped_after)


def hunk_lines(hunk: Hunk, width: int, rows: int) -> list[Line]:
    """The hunk as ``- old`` and ``+ new`` lines of at most ``width`` characters, at most ``rows`` lines a side."""
    out: list[Line] = []
    for sign, part, style in (("- ", hunk.old, "old"), ("+ ", hunk.new, "new")):
        room = max(16, width - 2)
        lines = part.split("\n") if part else [""]
        shown = lines[:rows]
        for number, text in enumerate(shown):
            before = hunk.before if number == 0 else ""
            after = hunk.after if number == len(lines) - 1 else ""
            out.append(_row(sign, style, before, text, after, hunk, room))
        if len(lines) > rows:
            hidden = len(lines) - rows
            out.append([(style, f"{sign}... {hidden:,} more line{'' if hidden == 1 else 's'}")])
    return out


def _row(sign: str, style: str, before: str, text: str, after: str, hunk: Hunk, room: int) -> Line:
    before, text, after = one_line(before), one_line(text), one_line(after)
    cut_left, cut_right = hunk.clipped_before and bool(before), hunk.clipped_after and bool(after)
    spare = room - len(text)
    if len(before) + len(after) > max(0, spare):
        side = max(0, spare - 2 * len(ELLIPSIS)) // 2
        keep_before = min(len(before), max(side, spare - 2 * len(ELLIPSIS) - len(after)))
        keep_after = min(len(after), max(0, spare - 2 * len(ELLIPSIS) - keep_before))
        keep_before = max(0, keep_before)
        cut_left = cut_left or keep_before < len(before)
        cut_right = cut_right or keep_after < len(after)
        before, after = before[len(before) - keep_before :], after[:keep_after]
    if len(text) > room - 2 * len(ELLIPSIS):
        half = max(4, (room - 3 * len(ELLIPSIS)) // 2)
        text = text[:half] + ELLIPSIS + text[-half:]
    line: Line = [(style, sign + (ELLIPSIS if cut_left else "") + before), (f"{style}-part", text)]
    return [*line, (style, after + (ELLIPSIS if cut_right else ""))]
