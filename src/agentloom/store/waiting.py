"""What an unfinished trace waits for, read from its entries: open questions, calls in doubt, epochs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["NEEDLES", "Waits"]

Entry = dict[str, Any]

NEEDLES = (b'"suspend"', b'"resume"')
"""Bytes of which one stands in every line that begins something this module has to know of."""


class _Wait(NamedTuple):
    """A suspend entry: its number, the question's id, when it is due (nanoseconds since 1970)."""

    seq: int
    ask: str
    due: int | None


class Waits:
    """Entries are given one after the other, from the start of the trace or from anywhere in it.

    A question is open while its call has no outcome, and it no answer. What a ``retract`` entry takes back never was.
    """

    def __init__(self) -> None:
        self.epoch = 1
        """The writers that the trace had: 1 for a run that was never resumed."""
        self._open: dict[str, _Wait] = {}  # by call
        self._closed: dict[
            str, tuple[_Wait, int]
        ] = {}  # by call, with the number of the entry that closed it
        self._calls: dict[str, tuple[int, str | None]] = {}  # requests without an outcome: number, parent

    def take(self, entry: Entry) -> None:
        """Look at one entry; one of the wrong shape says nothing."""
        kind, call = entry.get("kind"), entry.get("call")
        seq = entry.get("seq")
        if not isinstance(seq, int):
            return
        if kind == "retract":
            self._retract(entry.get("from"))
        elif kind == "resume":
            self.epoch = epoch if isinstance(epoch := entry.get("epoch"), int) else self.epoch + 1
        elif kind == "answer":
            asked = (one for one, wait in self._open.items() if wait.ask == entry.get("ask"))
            self._close(next(asked, None), seq)
        elif not isinstance(call, str):
            return
        elif kind == "request":
            parent = entry.get("parent")
            self._calls[call] = seq, parent if isinstance(parent, str) else None
        elif kind == "suspend":
            ask, due = entry.get("ask"), entry.get("deadline")
            self._open[call] = _Wait(seq, str(ask), due if isinstance(due, int) else None)
        elif kind == "outcome":
            self._calls.pop(call, None)
            self._close(call, seq)

    def _close(self, call: str | None, seq: int) -> None:
        if call is not None and (wait := self._open.pop(call, None)) is not None:
            self._closed[call] = wait, seq

    def _retract(self, first: object) -> None:
        if not isinstance(first, int):
            return
        for call, (wait, closed) in list(self._closed.items()):
            if closed >= first:
                del self._closed[call]
                self._open[call] = wait
        self._open = {call: wait for call, wait in self._open.items() if wait.seq < first}
        self._calls = {call: known for call, known in self._calls.items() if known[0] < first}

    @property
    def asks(self) -> tuple[str, ...]:
        """The ids of the open questions, in the order in which they were asked."""
        return tuple(wait.ask for wait in self._open.values())

    @property
    def due(self) -> int | None:
        """When the run goes on without an answer, nanoseconds since 1970."""
        return min((wait.due for wait in self._open.values() if wait.due is not None), default=None)

    @property
    def at_rest(self) -> bool:
        """Whether it waits, and for nothing but questions: no other call is in doubt."""
        return bool(self._open) and set(self._calls) <= self._waiting()

    def _waiting(self) -> set[str]:
        """Calls that wait, and those in whose work they were made."""
        found: set[str] = set()
        line: Iterable[str] = self._open
        while line := [call for call in line if call not in found]:
            found.update(line)
            parents = (self._calls.get(call, (0, None))[1] for call in line)
            line = [parent for parent in parents if parent is not None]
        return found
