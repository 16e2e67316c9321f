"""Requests as captured: a history that grows is looked at whole once, and from then on only at what was added.

An agent of N turns sends its whole history each turn. That the new one begins with the one before, item for item and
type for type, is proved by comparing bytes (`marks`); an item that was edited in place has other bytes. Only the items
after them are encoded, written and put into the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.errors import NotSupported, ValueRefused
from agentloom.format.canonical import Tree
from agentloom.format.declared import Types
from agentloom.format.digests import Hash
from agentloom.format.encoding import encode, plain_items
from agentloom.format.marks import Marks
from agentloom.format.small import small_copy

if TYPE_CHECKING:
    from agentloom.format.histories import History

__all__ = ["Captures", "Grown"]

_REMEMBERED = 8  # lists of one field of a series: conversations that take turns
_CONTAINERS = (dict, list)


class Grown:
    """A list of a request: its tree, and which earlier list it extends (``base``, all of its ``keep`` items).

    ``items`` is shared with later lists: it is read, never changed. ``texts`` is the JSON of each item that was added,
    where it is known. ``before`` and ``state`` belong to the keys, ``history`` to the blobs. ``twin`` is the list as it
    is written, where that is another one: with placeholders for secrets.
    """

    __slots__ = (
        "_lent",
        "_shared",
        "base",
        "before",
        "history",
        "items",
        "keep",
        "marks",
        "state",
        "texts",
        "twin",
    )

    def __init__(
        self,
        items: list[Tree],
        marks: Marks,
        base: Grown | None = None,
        texts: list[bytes] | None = None,
    ) -> None:
        self.items = items
        self.base = base
        self.keep = 0 if base is None else len(base.items)
        self.texts = texts
        self.before: tuple[object, ...] | None = None
        self.state: Hash | None = None
        self.history: History | None = None
        self.twin: Grown | None = None
        # Shared along the line of lists, each of which begins with the one before.
        self.marks = marks
        self._lent: list[Any] = [] if base is None else base._lent
        self._shared: bool = base is not None and base._shared

    def lend(self, *, read_only: bool = False) -> list[Any]:
        """The list for whoever performs the call: what is done to it changes nothing that is written, and no list
        lent later. Its items are lent again with the next list as long as they are what they were. ``read_only``:
        nothing is done to it but to the list itself."""
        lent, items = self._lent, self.items
        if read_only:
            self._shared = True
            return items.copy()
        count = min(len(lent), len(items))
        if not _equal(lent[:count], items[:count]):
            lent.clear()
        lent += map(_copied, items[len(lent) :])
        return lent[: len(items)]

    def check(self) -> None:
        """Raise ``NotSupported`` where somebody to whom the items were lent to read only has changed them."""
        if self._shared and not self.marks.begin(self.items):
            raise NotSupported(
                "whoever performs the model calls says that it only reads requests (reads_only), and changed one",
                hint="take reads_only = True away from the model backend: it is given copies then",
            )

    def settle(self) -> None:
        """What this list extends is not needed any more: it was written, and is part of the key."""
        self.base = self.texts = None
        if self.twin is not None:
            self.twin.settle()


class Captures:
    """Captures the requests of a run. ``types`` are the user types that can be restored."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._latest: dict[tuple[str, str], list[Grown]] = {}

    def capture(
        self, fields: Mapping[str, object], series: str | None
    ) -> tuple[dict[str, Tree], dict[str, Grown]]:
        """The tree of a request, and those of its lists that were taken as histories of ``series``.

        The tree is what ``encode`` gives. Raises ``ValueRefused`` as ``encode`` does.
        """
        if series is not None:
            grown: dict[str, Grown] = {}
            others: dict[str, object] = {}
            for name, value in fields.items():
                if type(name) is not str or name[:1] == "$" or not name.isascii():
                    break
                if type(value) is not list or not value:
                    others[name] = value
                    continue
                found = self._grown(series, name, cast("list[Any]", value))  # type: ignore[redundant-cast]
                if found is None:
                    break
                grown[name] = found
            else:
                joined = self._with(fields, grown, others) if grown else None
                if joined is not None:
                    return joined, grown
        small = small_copy(fields)
        if small is not None:
            return small, {}
        return cast("dict[str, Tree]", encode(dict(fields), self._types)), {}

    def check(self) -> None:
        """``Grown.check`` of every list that may still grow."""
        for latest in self._latest.values():
            for grown in latest:
                grown.check()

    def _with(
        self, fields: Mapping[str, object], grown: Mapping[str, Grown], others: dict[str, object]
    ) -> dict[str, Tree] | None:
        """The whole tree from the lists and the other fields; None where ``encode`` must say what is refused."""
        rest = small_copy(others)
        if rest is None:
            try:
                rest = cast("dict[str, Tree]", encode(others, self._types))
            except ValueRefused:
                return None
            if rest.keys() != others.keys():
                return None
        return {name: grown[name].items if name in grown else rest[name] for name in fields}

    def _grown(self, series: str, field: str, value: list[Any]) -> Grown | None:
        """``value`` as a history; None when it holds anything but exact JSON types."""
        latest = self._latest.get((series, field))
        if latest is None:
            latest = self._latest[series, field] = []
        for index, known in enumerate(latest):
            keep = len(known.items)
            if keep <= len(value) and known.marks.begin(value):
                if keep == len(value):
                    return known
                found = _taken(value, known.marks, known)
                if found is None:
                    return None
                del latest[index]
                break
        else:
            found = _taken(value, Marks(), None)
            if found is None:
                return None
        latest.insert(0, found)
        del latest[_REMEMBERED:]
        return found


def _taken(value: list[Any], marks: Marks, base: Grown | None) -> Grown | None:
    """``value``, which begins with ``base``; None when the rest holds anything but exact JSON types."""
    added = value if base is None else value[len(base.items) :]
    mark = marks.mark(added)
    taken = None if mark is None else plain_items(added)
    if taken is None:
        return None
    copies, texts = taken
    marks.extend(value, mark)
    return Grown(copies if base is None else base.items + copies, marks, base, texts)


def _copied(tree: Any) -> Any:
    """A copy that shares no container with ``tree``."""
    if type(tree) is dict:
        fields = cast("dict[str, Any]", tree)
        return {name: _copied(item) if type(item) in _CONTAINERS else item for name, item in fields.items()}
    if type(tree) is list:
        return [_copied(item) for item in cast("list[Any]", tree)]  # type: ignore[redundant-cast]
    return tree


def _equal(lent: list[Any], items: list[Any]) -> bool:
    """Whether what was lent is still what it was. Quick: the texts in them are the very same objects."""
    try:
        return lent == items
    except Exception:  # noqa: BLE001 - what a foreign object raises when it is compared: it was not in there
        return False
