"""What a tool of a script changes in place: found when it is recorded, done again when it is replayed.

A tool is given the script's own objects. Those that can be changed (lists, mappings, sets, byte arrays, dataclasses,
models) are looked at before and after: what has changed is kept beside the result, each object by the way that leads to
it (``["args", "cart", 0]``, ``["module:__main__", "STATE"]``). A replay, which runs no tool, gives the same objects of
the replayed script their new contents. The result may be, or hold, such an object: then it is that object again, if it
is what was recorded. Variables that a tool binds anew are kept in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentloom.cli.script_kinds import (
    PLAIN,
    Kept,
    again,
    become,
    changeable,
    contents,
    either,
    filled,
    in_order,
    kept_of,
    parts_of,
    watched,
)
from agentloom.cli.script_names import found_by_name, name_of
from agentloom.runtime.registry import TYPES

__all__ = ["ARGUMENTS", "Before", "Changes", "Roots", "Shared", "place_of", "put_back"]

Way = tuple[Any, ...]
"""The way to an object: a root, a name, then a key, an index or the name of an attribute for each step."""

Roots = Mapping[str, Mapping[str, Any]]
"""What a tool can reach by name: ``{"args": arguments, "__main__": variables of the script}``."""

ARGUMENTS = "args"
"""The root of a call's arguments."""

_MOST = 200_000
"""How many values are looked at for one call; of what lies behind them it is not known whether it was changed."""
_DEEP = 250
"""Deeper than a value may nest; what is deeper is refused by who writes it."""


@dataclass(frozen=True)
class Shared:
    """Stands for an object that is there already (``at`` is the way to it), that stands elsewhere among the
    changes (``at`` is its number), or that the program has under a name (a function or class: ``at`` is
    ``module:qualname``)."""

    at: Any


@dataclass(frozen=True)
class Changes:
    """A tool's result, what the tool printed (as in ``Printed``), and what it changed in place:
    ``[[way or number, kept, contents], ...]``, where ``kept`` is how many items at the front of a list stay, or true:
    the other members of a mapping do. ``bound``: ``[[root, name, value], ...]``, variables that it bound anew.
    ``same``: ``[[steps, way or number], ...]``, which objects stand in the result; where it raised, in
    ``[args, attributes]`` of its exception. ``lost``: in words, what it changed and cannot be kept; nothing
    is replayed past it. ``state``: what it changed in the process (``script_state``). ``told``: in words,
    what else it did that a replay does not bring about. ``raised``: of its exception, where it came from
    (``script_raised``)."""

    value: Any
    printed: list[list[Any]]
    changed: list[list[Any]]
    bound: list[list[Any]]
    same: list[list[Any]]
    lost: str | None = None
    state: dict[str, Any] | None = None
    told: list[str] | None = None
    raised: list[Any] | None = None


TYPES.register(Shared)
TYPES.register(Changes)


class Before:
    """The objects that can be reached from ``roots``, as they are now. ``after`` says what became of them."""

    def __init__(self, roots: Roots) -> None:
        self.ways: dict[int, Way] = {}
        self._objects: list[tuple[Any, Any]] = []  # keeps them alive, and so their identities
        self._tuples: list[Any] = []  # as well: what holds objects, and may be the result itself
        self._names = {root: dict(names) for root, names in roots.items() if root != ARGUMENTS}
        self._left = _MOST
        for root, names in roots.items():
            for name, value in names.items():
                if type(value) not in PLAIN:
                    self._look((root, name), value)

    def _look(self, way: Way, value: Any) -> None:
        todo: list[tuple[Way, Any]] = [(way, value)]
        while todo:
            way, value = todo.pop()
            if changeable(value) or watched(value):
                if id(value) in self.ways:
                    continue
                self.ways[id(value)] = way
                self._objects.append((value, contents(value)))
            elif issubclass(type(value), tuple) and value:
                self.ways.setdefault(id(value), way)
                self._tuples.append(value)
            inner = list(parts_of(value))
            self._left -= len(inner)
            if self._left < 0:
                return
            todo += [((*way, step), part) for step, part in reversed(inner) if type(part) not in PLAIN]

    def after(self, value: Any, roots: Roots) -> Seen:
        """What became of them; ``roots`` are the variables as they are now, and ``value`` what the tool returned."""
        seen = Seen(self.ways, value)
        for one, before in self._objects:
            kept = kept_of(one, before)
            if kept is not None:
                seen.changed.append((self.ways[id(one)], one, kept))
        for root, before in self._names.items():
            for name, now in roots[root].items():
                if name not in before or before[name] is not now:
                    seen.bound.append((root, name, now))
        return seen


class Seen:
    """What a call gave (``value``) and changed, as it is to be written: with ``Shared`` for objects that are
    known, or that are met more than once."""

    def __init__(self, ways: Mapping[int, Way], value: Any) -> None:
        self.value = value
        self.changed: list[tuple[Way, Any, Kept]] = []
        self.bound: list[tuple[str, str, Any]] = []
        self._ways = ways
        self._begin()

    def _begin(self) -> None:
        self._met: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._later: list[tuple[int, Any]] = []

    def written(self, printed: list[list[Any]]) -> Changes | None:
        """None: nothing was changed, and no object of the result is known or met twice."""
        self._begin()
        self._count([self.value, *(now for _, _, now in self.bound)])
        self._count([part for _, one, kept in self.changed for _, part in _new(one, kept)])
        met = self._shared((), self.value)
        same = [[steps, shared.at] for steps, shared in met if not isinstance(shared.at, str)]
        bound = [[root, name, self._copy(now, 0)] for root, name, now in self.bound]
        made: list[list[Any]] = []
        for way, one, kept in self.changed:
            in_order(one)
            stays = True if isinstance(kept, list) else kept
            made.append([list(way), stays, self._inner(one, 0, kept)])
        for number, one in self._later:  # which may grow meanwhile
            made.append([number, 0, self._inner(one, 0)])
        return Changes(self.value, printed, made, bound, same) if made or bound or same else None

    def _shared(self, steps: tuple[Any, ...], value: Any) -> Iterator[tuple[list[Any], Shared]]:
        """Where in the result objects stand that are known or met more than once."""
        if type(value) in PLAIN or len(steps) > _DEEP:
            return
        shown = self._standing(value)
        if shown is not None:
            yield list(steps), shown
            return
        for step, part in parts_of(value):
            yield from self._shared((*steps, step), part)

    def _count(self, todo: list[Any]) -> None:
        """How often each object is met that is not known."""
        while todo:
            value = todo.pop()
            if changeable(value):
                if id(value) in self._ways:
                    continue
                self._met[id(value)] = self._met.get(id(value), 0) + 1
                if self._met[id(value)] > 1:
                    continue
                in_order(value)
            todo += [part for _, part in parts_of(value) if type(part) not in PLAIN]

    def _copy(self, value: Any, depth: int) -> Any:
        if type(value) in PLAIN or depth > _DEEP:
            return value
        shown = self._standing(value)
        if shown is not None:
            return shown
        if not changeable(value):
            return again(value, [self._copy(part, depth + 1) for _, part in parts_of(value)])
        return self._inner(value, depth)

    def _standing(self, value: Any) -> Shared | None:
        """What stands for an object that is known, or met more than once."""
        way = self._ways.get(id(value))
        if way is not None:
            return Shared(list(way))
        if (name := name_of(value)) is not None:
            return Shared(name)
        if self._met.get(id(value), 0) < 2:
            return None
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._numbers)
            self._later.append((number, value))
        return Shared(number)

    def _inner(self, value: Any, depth: int, kept: Kept = 0) -> Any:
        """A copy of the object itself, or of what is new in it."""
        return filled(value, {step: self._copy(part, depth + 1) for step, part in _new(value, kept)})


def _new(value: Any, kept: Kept) -> list[tuple[Any, Any]]:
    """The parts of an object that are not kept."""
    parts = list(parts_of(value))
    if isinstance(kept, list):
        members = set(kept)
        return [(step, part) for step, part in parts if step in members]
    return parts[kept:]


# -- on replay --------------------------------------------------------------------------------------------------------


def put_back(
    found: Changes, roots: Roots, bind: Callable[[str, str, Any], None], value: Any
) -> tuple[Any, list[str]]:
    """Do what ``found`` says to the objects of ``roots``; the result ``value`` with those that stand in it,
    and in words what is not there to be changed. ``bind(root, name, value)`` binds a variable."""
    gone: list[str] = []
    ways: dict[int, Any] = {}
    for number, (at, _, _) in enumerate(found.changed):
        if not isinstance(at, int):
            _look_up(ways, number, roots, at, gone)
    objects: dict[int, Any] = {}
    for number, (_, at) in enumerate(found.same):
        if not isinstance(at, int):
            _look_up(objects, number, roots, at, [])
    numbered = {at: new for at, _, new in found.changed if isinstance(at, int)}
    everything = [[value for _, _, value in found.bound], *(new for _, _, new in found.changed)]
    there: dict[int, Any] = {}
    for shared in _shared_in(everything):
        if isinstance(shared.at, int):
            there[id(shared)] = numbered[shared.at]
        elif isinstance(shared.at, str):
            try:
                there[id(shared)] = found_by_name(shared.at)
            except LookupError:
                gone.append(shared.at)
        else:
            _look_up(there, id(shared), roots, shared.at, gone)
    bound, *contents = [_filled_in(one, there) for one in everything]
    for number, new in enumerate(contents):
        if number in ways:
            try:
                become(ways[number], new, found.changed[number][1], merging=True)
            except LookupError:
                gone.append(place_of(tuple(found.changed[number][0])))
    for (root, name, _), now in zip(found.bound, bound, strict=True):
        try:
            bind(root, name, now)
        except LookupError:
            gone.append(place_of((root, name)))
    for number, (steps, at) in enumerate(found.same):
        one = numbered.get(at) if isinstance(at, int) else objects.get(number)
        if one is not None:
            value = _replaced(value, steps, one)
    return value, gone


def _look_up(into: dict[int, Any], number: int, roots: Roots, way: list[Any], gone: list[str]) -> None:
    try:
        into[number] = _at(roots, way)
    except LookupError:
        gone.append(place_of(tuple(way)))


def _replaced(value: Any, steps: list[Any], one: Any) -> Any:
    """``value`` with the object ``one`` where the steps lead to, if it is what stands there."""
    if not steps:
        return either(one, value)
    parts = dict(parts_of(value))
    parts[steps[0]] = _replaced(parts[steps[0]], steps[1:], one)
    if not changeable(value):
        return again(value, list(parts.values()))
    become(value, filled(value, parts))
    return value


def place_of(way: Way) -> str:
    """A way in words: ``its argument cart[0].total``, ``STATE``."""
    root, name, *steps = way
    text = "".join(
        f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]" for step in steps
    )
    return f"its argument {name}{text}" if root == ARGUMENTS else f"{name}{text}"


def _at(roots: Roots, way: list[Any]) -> Any:
    """The object that a way leads to. ``LookupError`` where there is none."""
    root, name, *steps = way
    value: Any = roots[root][name]
    for step in steps:
        for at, part in parts_of(value):
            if at is step or at == step:
                value = part
                break
        else:
            raise LookupError(step)
    return value


def _shared_in(values: list[Any]) -> Iterator[Shared]:
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, Shared):
            yield value
        elif type(value) not in PLAIN:
            todo += [part for _, part in parts_of(value)]


def _filled_in(value: Any, there: Mapping[int, Any]) -> Any:
    """``value``, in place, with the objects that ``Shared`` stands for."""
    if isinstance(value, Shared):
        return there.get(id(value))
    if type(value) in PLAIN:
        return value
    parts = dict(parts_of(value))
    made = {step: _filled_in(part, there) for step, part in parts.items()}
    if all(made[step] is parts[step] for step in made):
        return value
    if not changeable(value):
        return again(value, list(made.values()))
    become(value, filled(value, made))
    return value
