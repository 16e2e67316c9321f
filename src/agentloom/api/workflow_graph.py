"""The graph of a workflow: which step follows which, what each one sees, and where a loop goes back to.

A step's edges are those of ``after=``. They make a graph without cycles; the ways back of ``loop=`` are no edges. A
loop from S back to T is made of T, S and every step between; each visit runs T and all steps after it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentloom.api.workflow_steps import Step

__all__ = ["Graph", "knotted"]

Names = tuple[str, ...]


@dataclass(slots=True)
class Graph:
    """Steps by name in the order of their definition, and what follows from their edges.

    ``successors``: the steps directly after each; ``before``: all steps that lead to it; ``below``: all that it leads
    to; ``fellows``: the steps of its loops that do not lead to it (itself among them), whose results it sees of the
    visit before. All in the order of definition.
    """

    steps: dict[str, Step]
    successors: dict[str, Names] = field(default_factory=dict[str, Names])
    before: dict[str, Names] = field(default_factory=dict[str, Names])
    below: dict[str, Names] = field(default_factory=dict[str, Names])
    fellows: dict[str, Names] = field(default_factory=dict[str, Names])

    @classmethod
    def of(cls, steps: Mapping[str, Step]) -> Graph:
        """The graph of ``steps``. Names that are no steps, and steps of a cycle, are passed over (see ``knotted``)."""
        graph = cls(dict(steps))
        order = _ordered(steps)
        above: dict[str, set[str]] = {name: set() for name in steps}
        for name in order:
            for earlier in _known(steps, name):
                above[name] |= above[earlier] | {earlier}
        following: dict[str, list[str]] = {name: [] for name in steps}
        below: dict[str, list[str]] = {name: [] for name in steps}
        for name in steps:
            for earlier in _known(steps, name):
                following[earlier].append(name)
            for earlier in above[name]:
                below[earlier].append(name)
        graph.successors = {name: tuple(names) for name, names in following.items()}
        graph.below = {name: tuple(names) for name, names in below.items()}
        graph.before = {name: graph.sorted(above[name]) for name in steps}
        graph.fellows = graph._fellows(above)
        return graph

    def sorted(self, names: Iterable[str]) -> Names:
        """``names`` in the order of definition."""
        chosen = frozenset(names)
        return tuple(name for name in self.steps if name in chosen) if chosen else ()

    def again(self, target: str) -> Names:
        """The steps that run anew when a loop goes back to ``target``."""
        return (target, *self.below[target])

    def choices(self, name: str) -> Names:
        """What a step may choose, the near ones: the steps directly after it, then the ways back."""
        return (*self.successors[name], *self.steps[name].loop)

    def _fellows(self, above: Mapping[str, set[str]]) -> dict[str, Names]:
        found: dict[str, set[str]] = {name: set() for name in self.steps}
        for source, step in self.steps.items():
            for target in step.loop:
                if target not in self.steps:
                    continue
                body = (set(self.again(target)) & above[source]) | {source}
                for name in body:
                    found[name] |= body - above[name]
        return {name: self.sorted(names) for name, names in found.items()}


def _known(steps: Mapping[str, Step], name: str) -> Iterable[str]:
    return (earlier for earlier in steps[name].after if earlier in steps)


def _ordered(steps: Mapping[str, Step]) -> list[str]:
    """The steps so that each stands behind those that it waits for; steps of a cycle and behind one are left out."""
    waits = {name: len(set(_known(steps, name))) for name in steps}
    following: dict[str, list[str]] = {name: [] for name in steps}
    for name in steps:
        for earlier in dict.fromkeys(_known(steps, name)):
            following[earlier].append(name)
    order = [name for name, count in waits.items() if count == 0]
    for name in order:  # grows while it is read
        for later in following[name]:
            waits[later] -= 1
            if waits[later] == 0:
                order.append(later)
    return order


def knotted(steps: Mapping[str, Step]) -> tuple[list[Names], Names]:
    """The cycles of ``after=``, one for each knot of them, and the steps that can never start because of a cycle."""
    left = dict.fromkeys(steps)
    for name in _ordered(steps):
        del left[name]
    cycles: list[Names] = []
    inside: set[str] = set()
    for name in left:
        if name in inside:
            continue
        way = _way_back(steps, name)
        if way and not inside.intersection(way):
            cycles.append(way)
            inside.update(way)
    return cycles, tuple(name for name in left if name not in inside)


def _way_back(steps: Mapping[str, Step], start: str) -> Names:
    """The shortest way from ``start`` back to it against the edges, given in the direction of running; or none."""
    came: dict[str, str] = {}
    todo = [start]
    for name in todo:  # grows while it is read
        for earlier in _known(steps, name):
            if earlier == start:
                way = [name]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return (start, *way[:-1]) if name != start else (start,)
            if earlier not in came:
                came[earlier] = name
                todo.append(earlier)
    return ()
