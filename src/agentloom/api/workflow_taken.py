"""Which way a run of a workflow went, from its trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from agentloom.api.workflow_graph import Graph
from agentloom.errors import PayloadMissing, WorkflowError
from agentloom.format.callids import parse
from agentloom.format.guards import is_list, is_map, tag_of
from agentloom.format.journal import Entry, Journal

__all__ = ["Taken", "way_of"]

_NOTE = re.compile(r"in step '(\w+)' of workflow (.+)")


@dataclass(slots=True)
class Taken:
    """``visits`` says how often each step ran, ``skipped`` how often its ``when=`` was false, ``choices`` how often it
    chose what, ``failed`` the step that ended the run."""

    visits: dict[str, int]
    skipped: dict[str, int]
    choices: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    failed: str | None = None

    def reached(self, name: str) -> bool:
        """Whether the run came to the step."""
        return bool(self.visits[name] or self.skipped[name])

    def went(self, earlier: str, later: str) -> bool:
        """Whether the run went from one step to another directly after it."""
        chose = any(name == earlier for name, _ in self.choices)
        free = not chose or (earlier, later) in self.choices or self._went_on(earlier)
        return self.reached(earlier) and self.reached(later) and free

    def _went_on(self, name: str) -> bool:
        """Whether a step that chose did not choose each time."""
        return self.visits[name] > sum(
            count for (chooser, _), count in self.choices.items() if chooser == name
        )


def way_of(graph: Graph, workflow: str, journal: Journal) -> Taken:
    """The way of the run in ``journal``. Raises ``WorkflowError`` where that is a run of another agent."""
    agent = str(journal.entries[0].get("agent"))
    if agent != workflow:
        raise WorkflowError(
            f"the trace is of {agent!r}, not of workflow {workflow!r}",
            hint="draw the workflow that was run",
            workflow=workflow,
        )
    visited: dict[str, set[int]] = {name: set() for name in graph.steps}
    unwanted: dict[str, set[int]] = {name: set() for name in graph.steps}
    taken = Taken({}, {}, failed=_failed(graph, workflow, journal))
    for name, visit, entry in _entries(graph, journal):
        visited[name].add(visit)
        if entry["kind"] != "state":
            continue
        if entry["name"] == f"when:{name}" and _value(journal, entry) is False:
            unwanted[name].add(visit)
        goto = entry.get("goto")
        if entry["name"] == name and isinstance(goto, str):
            taken.choices[name, goto] = taken.choices.get((name, goto), 0) + 1
    taken.visits = {name: len(visits - unwanted[name]) for name, visits in visited.items()}
    taken.skipped = {name: len(visits) for name, visits in unwanted.items()}
    if taken.failed is not None and not taken.reached(taken.failed):
        taken.visits[taken.failed] = 1  # it failed before it recorded anything
    return taken


def _entries(graph: Graph, journal: Journal) -> Iterator[tuple[str, int, Entry]]:
    """The entries below steps of the run's own workflow: step, visit from 0, entry."""
    for entry in journal.entries:
        call = entry.get("call")
        if entry["kind"] not in ("request", "state") or not isinstance(call, str):
            continue
        path = parse(call).path
        if len(path) > 2 and path[2].name in graph.steps:
            yield path[2].name, path[2].index or 0, entry


def _value(journal: Journal, entry: Entry) -> object:
    try:
        return journal.tree(cast(str, entry["val"]))
    except PayloadMissing:
        return None  # erased: the run is drawn as if the step had run


def _failed(graph: Graph, workflow: str, journal: Journal) -> str | None:
    """The step that the error of the run names: it notes each step that it passed on its way out."""
    none: Entry = {}
    end = next((entry for entry in reversed(journal.entries) if entry["kind"] == "end"), none)
    blob = end.get("err")
    if not isinstance(blob, str):
        return None
    try:
        tag = tag_of(journal.tree(blob))
    except PayloadMissing:
        return None
    attrs = tag[1].get("attrs") if tag is not None and is_map(tag[1]) else None
    notes = attrs.get("__notes__") if is_map(attrs) else None
    for note in reversed(notes if is_list(notes) else []):
        found = _NOTE.fullmatch(str(note))
        if found and found[2] == repr(workflow) and found[1] in graph.steps:
            return found[1]
    return None
