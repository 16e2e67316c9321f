"""What is known about a value: its kind, and the marks that it carries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentloom.cli.checks.findings import Level

__all__ = ["ORDER", "SHY", "UNKNOWN", "Kind", "Mark", "Value", "join", "of_elements"]

ORDER = frozenset(["set-order", "listing-order"])
"""Marks of an order: gone once the value is sorted, counted or put into a set."""
SHY = frozenset(["folder", "environment", "machine", "arguments"])
"""Marks that only texts made of the value carry on: a client made with a path or a key does not hold it as text."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One origin of non-determinism.

    ``weak``: an element met in a marked order, which is itself no order yet; ``inner``: an order inside of an element
    (a text joined from a set, in a list), which sorting the container does not touch.
    """

    rule: str
    file: str
    line: int
    column: int
    function: str
    subject: str
    said: str
    level: Level | None = None
    weak: bool = False
    inner: bool = False

    @property
    def is_order(self) -> bool:
        """Whether it is the order of the marked value itself."""
        return self.rule in ORDER and not self.weak and not self.inner


@dataclass(frozen=True, slots=True)
class Kind:
    """``name``: ``set``, ``keys``, ``list``, ``dict``, ``iter``, ``str``, ``int``, ``float``, ``path``, ``object``
    (an instance of ``cls``), ``class``, ``function`` or ``?``. ``elem``: of the elements, of a dict the values."""

    name: str = "?"
    elem: Kind | None = None
    cls: str = ""


_ANY = Kind()


@dataclass(frozen=True, slots=True)
class Value:
    """A kind and marks."""

    kind: Kind = _ANY
    marks: frozenset[Mark] = frozenset[Mark]()

    def strong(self) -> frozenset[Mark]:
        """The marks that say something at a sink."""
        return frozenset(mark for mark in self.marks if not mark.weak)

    def without(self, rules: frozenset[str]) -> Value:
        """The value without the marks of these rules."""
        kept = frozenset(mark for mark in self.marks if mark.rule not in rules or mark.inner)
        return Value(self.kind, kept)

    def inside(self) -> frozenset[Mark]:
        """The marks of a container that holds the value."""
        return frozenset(replace(mark, inner=True) if mark.is_order else mark for mark in self.marks)

    def marked(self, *marks: Mark) -> Value:
        """The value with these marks as well."""
        return Value(self.kind, self.marks | set(marks)) if marks else self

    def of(self, name: str, elem: Kind | None = None) -> Value:
        """The same marks on another kind."""
        return Value(Kind(name, elem), self.marks)


UNKNOWN = Value()


def join(*values: Value) -> Value:
    """What one of ``values`` is: all marks; the kind where they agree, a set where one is."""
    marks = frozenset[Mark]().union(*(value.marks for value in values))
    kinds = {value.kind for value in values}
    if len(kinds) == 1:
        return Value(kinds.pop(), marks)
    names = {kind.name for kind in kinds} - {"?"}
    if len(names) == 1:
        elems = {kind.elem for kind in kinds if kind.name in names and kind.elem is not None}
        classes = {kind.cls for kind in kinds if kind.name in names}
        elem = elems.pop() if len(elems) == 1 else None
        return Value(Kind(names.pop(), elem, classes.pop() if len(classes) == 1 else ""), marks)
    return Value(_ANY, marks)


def of_elements(value: Value) -> Value:
    """What an element of ``value`` is: kinds of elements are kept, an order of the whole becomes weak."""
    kind = value.kind.elem or (Kind("str") if value.kind.name == "str" else _ANY)
    marks = (replace(mark, weak=mark.is_order or mark.weak, inner=False) for mark in value.marks)
    return Value(kind, frozenset(marks))
