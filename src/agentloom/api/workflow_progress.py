"""How far a run of a workflow is: which step may start, which will never run, what each one sees. No I/O, no tasks.

An edge is *taken* when the step before it ran or was skipped by ``when=``, and *dead* when that step is dead or chose
another way. A step starts when all its edges are resolved and at least one is taken; when all are dead, it is dead.
So a join behind a choice waits for the branches that run, and for no other (dead-path elimination, as BPEL has it).

A way back (``loop=``) resets its target and everything after the target. Steps of these that run beside the loop are
waited for first; nothing of them starts meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from agentloom.api.workflow_graph import Graph
from agentloom.errors import WorkflowError

__all__ = ["Progress"]

Status = Literal["pending", "running", "done", "skipped", "dead"]
_RESOLVED = ("done", "skipped", "dead")


class Progress:
    """The state of one run. ``visits`` counts how often each step was reached (run or skipped)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.status: dict[str, Status] = dict.fromkeys(graph.steps, "pending")
        self.results: dict[str, object] = {}
        self.visits: dict[str, int] = dict.fromkeys(graph.steps, 0)
        self._before: dict[str, object] = {}  # results of the visit before, of steps in a loop
        self._choices: dict[str, str] = {}
        self._back: list[str] = []  # targets of ways back that wait for running steps
        self._returned: set[str] = set()  # targets of ways back that are to run, whatever their edges say
        self._times: dict[tuple[str, str], int] = {}
        self._look: set[str] = set(graph.steps)
        self._place = {name: number for number, name in enumerate(graph.steps)}

    # -- forward -------------------------------------------------------------------------------------------------

    def start(self) -> tuple[list[str], list[str]]:
        """The steps that start now, and those found dead, in the order of definition."""
        starting: list[str] = []
        died: list[str] = []
        while self._look:
            looked, self._look = self._look, set()
            for name in self._sorted(looked):
                if self.status[name] != "pending" or self._held(name):
                    continue
                if any(self.status[earlier] not in _RESOLVED for earlier in self.graph.steps[name].after):
                    continue
                if self._leads_to(name):
                    self.status[name] = "running"
                    self.visits[name] += 1
                    self._returned.discard(name)
                    starting.append(name)
                else:
                    died.append(name)
                    self._resolved(name, "dead")
        return self._sorted(starting), self._sorted(died)

    def ended(self, name: str, value: object, choice: str | None = None) -> None:
        """Step ``name`` ran; ``choice`` is what it chose to go on with. Raises ``WorkflowError`` past a bound."""
        self.results[name] = value
        way_back = choice is not None and choice in self.graph.steps[name].loop
        if choice is not None and not way_back:
            self._choices[name] = choice
            self._look.add(choice)
        self._resolved(name, "done")
        if choice is not None and way_back and not any(name in self.graph.again(to) for to in self._back):
            self._go_back(name, choice)
        self._reset()

    def passed(self, name: str) -> None:
        """Step ``name`` was skipped by its ``when=``."""
        self.results.pop(name, None)
        self._resolved(name, "skipped")
        self._reset()

    @property
    def over(self) -> bool:
        """Whether every step ran, was skipped, or is dead."""
        return all(status in _RESOLVED for status in self.status.values())

    def output(self) -> object:
        """The result of the last step that ran; of several branches a mapping, by the name of the last step of each.

        None where no step ran.
        """
        ran = [name for name, status in self.status.items() if status == "done"]
        last = [
            name for name in ran if not any(self.status[later] == "done" for later in self.graph.below[name])
        ]
        if len(last) == 1:
            return self.results[last[0]]
        return {name: self.results[name] for name in last} or None

    def _resolved(self, name: str, status: Status) -> None:
        self.status[name] = status
        self._look.update(self.graph.successors[name])

    def _leads_to(self, name: str) -> bool:
        after = self.graph.steps[name].after
        if not after or name in self._returned or any(to == name for to in self._choices.values()):
            return True
        return any(self.status[earlier] != "dead" and earlier not in self._choices for earlier in after)

    def _sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._place.__getitem__)

    # -- back ----------------------------------------------------------------------------------------------------

    def _go_back(self, source: str, target: str) -> None:
        bound = self.graph.steps[source].loop[target]
        times = self._times[source, target] = self._times.get((source, target), 0) + 1
        if times > bound:
            raise WorkflowError(
                f"step {source!r} chose to go back to {target!r} for the {_nth(times)} time;"
                f" loop= allows {bound} {'time' if bound == 1 else 'times'}",
                hint=f"let {source!r} return a value when state.visit is {bound + 1}, or raise the bound",
                step=source,
                target=target,
                bound=bound,
            )
        again = self.graph.again(target)
        self._back = [other for other in self._back if other not in again] + [target]

    def _held(self, name: str) -> bool:
        return any(name in self.graph.again(target) for target in self._back)

    def _reset(self) -> None:
        """Make the ways back whose steps have all ended."""
        for target in list(self._back):
            again = self.graph.again(target)
            if any(self.status[name] == "running" for name in again):
                continue
            self._back.remove(target)
            self._returned.add(target)
            for name in again:
                self._before.pop(name, None)
                if self.status[name] == "done":
                    self._before[name] = self.results[name]
                self._choices.pop(name, None)
                self.results.pop(name, None)
                self.status[name] = "pending"
            self._look.update(again)

    # -- what a step sees ----------------------------------------------------------------------------------------

    def seen_by(self, name: str) -> dict[str, object]:
        """The results that step ``name`` sees, in the order of definition: of the steps before it, and of its loops'
        other steps those of the visit before."""
        before, fellows = self.graph.before[name], self.graph.fellows[name]
        if not fellows:
            return {other: self.results[other] for other in before if self.status[other] == "done"}
        seen: dict[str, object] = {}
        for other in self.graph.sorted((*before, *fellows)):
            if other in before and self.status[other] == "done":
                seen[other] = self.results[other]
            elif other in fellows and other in self._before:
                seen[other] = self._before[other]
        return seen

    def why(self, name: str, other: str) -> str | None:
        """Why step ``name`` sees no result of ``other``; None where that is no step."""
        if other not in self.status:
            return None
        if other in self.graph.before[name]:
            return self._why(other)
        if other not in self.graph.fellows[name]:
            return f"step {other!r} does not lead to step {name!r}; name it in after= there"
        first = self.visits[name] == 1
        return "this is the first visit of the loop" if first else "it did not run in the visit before"

    def _why(self, name: str) -> str:
        if self.status[name] == "skipped":
            return "its when= was false"
        for earlier in self.graph.steps[name].after:
            if earlier in self._choices:
                return f"step {earlier!r} chose {self._choices[earlier]!r}"
        for earlier in self.graph.steps[name].after:
            if self.status[earlier] == "dead":
                return self._why(earlier)
        return "it did not run"


def _nth(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
