"""A first look at one text: whether anything in it is more than chance, and so a closer look is needed."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, cast

from agentloom.runtime.redaction_layers import TooMuch, gunzip
from agentloom.runtime.redaction_look import Stretches
from agentloom.runtime.redaction_plan import (
    BINARY,
    CODED,
    ESCAPED,
    FOLDED,
    LETTER,
    MARK,
    PIECED,
    SPELT,
    WIDE,
    ZIPPED,
    Coded,
    Plan,
)
from agentloom.runtime.redaction_shapes import Runs, is_number, seen
from agentloom.runtime.redaction_spellings import Spellings

__all__ = ["Look"]

_PRINTED = (b"2", b"3", b"4", b"5", b"6", b"7")  # first digits of what may be in a secret


@dataclass(slots=True)
class Look:
    """A first look at one text."""

    plan: Plan
    stretches: Stretches
    pieces: tuple[object, ...] = ()
    """Which lists of pieces are suspect: ``PIECED``, ``SPELT``."""

    def any(self, hits: list[tuple[int, int, int]], base: int) -> bool:
        """Whether a hit is more than chance. ``base``: where the text in which they were found begins."""
        data, meaning, ends_with_run = self.stretches.data, self.plan.meaning, self.plan.ends_with_run
        runs = Runs(data)
        for index, at, stop in hits:
            start = base + at
            if start < runs.skip and ends_with_run[index]:
                continue
            what = meaning[index]
            if type(what) is list:
                for one in cast("list[Any]", what):  # type: ignore[redundant-cast]
                    if runs.hopeless(one, start):
                        continue
                    if seen(data, one, start) is not None or is_number(data, one, start):
                        return True
            elif type(what) is Spellings:
                if what.at(data, start) is not None:
                    return True
            elif what is PIECED or what is SPELT:
                if what in self.pieces:
                    return True
            elif what is not MARK and self._coded(what, start, base + stop):
                return True
        return False

    def _coded(self, what: object, start: int, end: int) -> bool:
        stretches = self.stretches
        if what is ESCAPED:
            return stretches.data[end : end + 1] in _PRINTED and stretches.escapes(start)
        if what is LETTER:
            return stretches.escapes(start)
        if type(what) is Coded:
            return stretches.base64(start, what.more)
        if what is CODED:
            return stretches.hexadecimal(start)
        if what is WIDE:
            return stretches.wide(start)
        if what is ZIPPED:
            return stretches.zipped(start)
        if what is FOLDED:
            try:
                folded = None if start else gunzip(stretches.data)
            except TooMuch:
                return True
            return folded is not None and stretches.suspects(folded)
        return what is not BINARY or self._tag(end)

    def _tag(self, start: int) -> bool:
        data = self.stretches.data
        try:
            plain = base64.b64decode(data[start : data.index(b'"', start)])
        except ValueError:
            return True
        return self.stretches.suspects(plain)
