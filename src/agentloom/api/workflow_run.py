"""A run of a workflow: starts what may start, one step alone in place and several as tasks, until nothing is left."""

from __future__ import annotations

from agentloom.api.workflow_events import (
    Event,
    StepFinished,
    StepSkipped,
    StepStarted,
    at_step,
    here,
    is_watched,
    tell,
)
from agentloom.api.workflow_graph import Graph
from agentloom.api.workflow_perform import Done, items_of, perform, wanted
from agentloom.api.workflow_progress import Progress
from agentloom.api.workflow_state import State, state_of
from agentloom.api.workflow_steps import Step
from agentloom.api.workflow_tasks import Crew
from agentloom.errors import WorkflowError
from agentloom.format.values import decode, encode
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import Scope, entered, require

__all__ = ["execute"]


async def execute(workflow: str, graph: Graph, given: object) -> object:
    """Run all steps of ``graph`` with the input ``given``; the output (see ``Progress.output``)."""
    return await _Run(workflow, graph, given).all()


class _Run:
    def __init__(self, workflow: str, graph: Graph, given: object) -> None:
        self._workflow = workflow
        self._graph = graph
        self._given = given
        self._progress = Progress(graph)
        self._names = list(graph.steps)
        self._scope = require("Workflow")
        outer = here()
        self._prefix = "" if outer is None else f"{outer.step}/"

    async def all(self) -> object:
        async with Crew[Done]() as crew:
            while True:
                starting, died = self._progress.start()
                for name in died:
                    tell(StepSkipped(self._prefix + name, why="not taken"))
                if (
                    len(starting) == 1 and not crew
                ):  # alone, as in a workflow without branches: no task is needed
                    self._ended(starting[0], await self._step(starting[0], self._scope.child(starting[0])))
                    continue
                for name in starting:
                    below = self._scope.child(name)
                    crew.spawn(self._names.index(name), below, self._step(name, below))
                if not crew:
                    return self._progress.output()
                for key, done in await crew.some():
                    self._ended(self._names[key], done)

    def _ended(self, name: str, done: Done) -> None:
        if done.skipped:
            self._progress.passed(name)
        else:
            try:
                self._progress.ended(name, done.value, done.choice)
            except WorkflowError as error:
                self._note(error, name)
                raise

    async def _step(self, name: str, scope: Scope) -> Done:
        """Perform a step in ``scope``; an error gets a note that says which step it was."""
        step = self._graph.steps[name]
        place = Event(self._prefix + name, self._progress.visits[name])
        with entered(scope), at_step(place):
            try:
                return await self._where_wanted(step, scope, place)
            except Exception as error:
                self._note(error, name)
                raise

    def _note(self, error: Exception, name: str) -> None:
        note = f"in step {name!r} of workflow {self._workflow!r}"
        if note not in getattr(error, "__notes__", ()):  # one object may be raised again and again
            error.add_note(note)

    async def _where_wanted(self, step: Step, scope: Scope, place: Event) -> Done:
        if not wanted(step, self._state(step, free=True), scope):
            tell(StepSkipped(place.step, place.visit))
            return Done(skipped=True)
        tell(StepStarted(place.step, place.visit))
        return await (self._performed(step, scope) if step.each is None else self._for_each(step, scope))

    async def _performed(self, step: Step, scope: Scope, item: tuple[int, object] | None = None) -> Done:
        done = await perform(step, self._state(step, item), scope, self._graph)
        place = here()
        if place is not None and is_watched():
            tell(StepFinished(place.step, place.visit, place.item, decode(encode(done.value, TYPES), TYPES)))
        return done

    async def _for_each(self, step: Step, scope: Scope) -> Done:
        """Perform the step for every item, ``limit`` of them at a time; the results in the order of the items."""
        items = items_of(step, self._state(step, free=True), scope)
        results: list[object] = [None] * len(items)
        left = [(number, scope.child("item")) for number in range(len(items))]
        left.reverse()
        async with Crew[Done]() as crew:
            while left or crew:
                while left and len(crew) < step.limit:
                    number, below = left.pop()
                    crew.spawn(number, below, self._item(step, below, number, items[number]))
                for number, done in await crew.some():
                    results[number] = done.value
        place = here()
        if place is not None and is_watched():
            tell(StepFinished(place.step, place.visit, None, decode(encode(results, TYPES), TYPES)))
        return Done(results)

    async def _item(self, step: Step, scope: Scope, number: int, item: object) -> Done:
        outer = here()
        place = Event(self._prefix + step.name, 1 if outer is None else outer.visit, number)
        with at_step(place):
            tell(StepStarted(place.step, place.visit, number))
            try:
                return await self._performed(step, scope, (number, item))
            except Exception as error:
                error.add_note(f"for item {number} of step {step.name!r}")
                raise

    def _state(self, step: Step, item: tuple[int, object] | None = None, *, free: bool = False) -> State:
        """What the step sees; with ``free``, what its ``when=`` and ``each=`` see, which ``inputs=`` does not bind."""
        fields = {"input": self._given, **self._progress.seen_by(step.name)}
        inputs = None if free else step.inputs
        if inputs is not None:
            fields = {name: fields[name] for name in inputs if name in fields}
        if item is not None:
            fields |= {"item": item[1], "index": item[0]}

        def why(name: str) -> str | None:
            if inputs is not None and name not in inputs and (name == "input" or name in self._graph.steps):
                return f"it is not among the inputs= of step {step.name!r}"
            return self._progress.why(step.name, name)

        return state_of(fields, why, visit=self._progress.visits[step.name])
