"""``Workflow``: a graph of steps. Models answer, deterministic steps decide, tools act; every step is recorded.

A model step without ``prompt`` sends the run's input as the user message; when steps have run before it, their
results follow the input, each as a line with the step's name and a colon and then the result. A deterministic step
gets the ``State``; it really runs on replay too, and its result and its choice are compared with the recorded ones.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from agentloom.api.agent import Agent
from agentloom.api.recording_mode import StoreLike
from agentloom.api.retries import Retry
from agentloom.api.templates import Template, template_at
from agentloom.api.trace import Trace
from agentloom.api.tracebacks import UserFrames
from agentloom.api.workflow_alone import Fault, check_name, check_step, check_workflow_name, error_of
from agentloom.api.workflow_checks import findings, raise_faults
from agentloom.api.workflow_draw import draw
from agentloom.api.workflow_events import Event, Finished
from agentloom.api.workflow_graph import Graph
from agentloom.api.workflow_nested import refuse_deep
from agentloom.api.workflow_run import execute
from agentloom.api.workflow_state import State
from agentloom.api.workflow_steps import Goto, Prompt, Step, goto
from agentloom.api.workflow_stream import WorkflowStream, in_steps
from agentloom.api.workflow_taken import way_of
from agentloom.api.workflow_words import KINDS, step_of
from agentloom.errors import NoActiveRun, WorkflowError
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.changes import profiles_of, use_profiles
from agentloom.runtime.guard import GuardPolicy, chosen_policy
from agentloom.runtime.left_out import left_out_here
from agentloom.runtime.profiles import Profile
from agentloom.runtime.recorder import RunOptions, begin, record_async
from agentloom.runtime.redaction_rules import Rules, checked_rules
from agentloom.runtime.registry import declare_annotations
from agentloom.runtime.scope import current
from agentloom.store import MemoryStore

__all__ = ["Goto", "State", "Workflow", "goto"]

F = TypeVar("F", bound=Callable[..., Any])


class Workflow:
    """Named steps, each after those that it names in ``after=``. ``name`` is what its runs are listed under;
    ``profiles`` (see ``profile``) sort the fields of the requests made in it; ``guard`` is the policy of its runs,
    ``secrets`` what is kept out of them (see ``secrets``)."""

    def __init__(
        self,
        name: str = "workflow",
        *,
        profiles: Iterable[Profile] = (),
        guard: GuardPolicy | None = None,
        secrets: Rules | None = None,
    ) -> None:
        check_workflow_name(name)
        self.name = name
        self._profiles = profiles_of(profiles)
        self._guard: GuardPolicy | None = None if guard is None else chosen_policy(guard)
        self._secrets = checked_rules("Workflow(secrets=)", secrets)
        self._steps: dict[str, Step] = {}
        self._open: dict[str, None] = {}  # decorators that have not decorated anything yet
        self._built: Graph | None = None
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # who makes the workflow
        self._module = str(caller.f_globals.get("__name__", "?"))
        self._file = os.path.abspath(caller.f_code.co_filename)

    def __copy__(self) -> Workflow:
        """Another workflow of the same steps; what is added to one is not added to the other."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._steps, made._open = dict(self._steps), dict(self._open)
        return made

    # -- building ------------------------------------------------------------------------------------------------

    @overload
    def step(self, name: F, /) -> F: ...
    @overload
    def step(
        self,
        name: str,
        *,
        after: str | Sequence[str] | None = None,
        when: Callable[[Any], object] | None = None,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        each: str | Callable[[Any], Any] | None = None,
        limit: int = 8,
        loop: Mapping[str, int] | None = None,
        inputs: Sequence[str] | None = None,
    ) -> Callable[[F], F]: ...
    @overload
    def step(
        self,
        name: str,
        *,
        model: str | Sequence[str],
        prompt: Prompt | None = None,
        template: Template | str | os.PathLike[str] | None = None,
        system: str | None = None,
        output: Any = None,
        repair: int | None = None,
        after: str | Sequence[str] | None = None,
        when: Callable[[Any], object] | None = None,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        each: str | Callable[[Any], Any] | None = None,
        limit: int = 8,
        inputs: Sequence[str] | None = None,
        **params: Any,
    ) -> Workflow: ...
    @overload
    def step(
        self,
        name: str,
        *,
        fn: Callable[[Any], Any],
        after: str | Sequence[str] | None = None,
        when: Callable[[Any], object] | None = None,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        each: str | Callable[[Any], Any] | None = None,
        limit: int = 8,
        loop: Mapping[str, int] | None = None,
        inputs: Sequence[str] | None = None,
    ) -> Workflow: ...
    @overload
    def step(
        self,
        name: str,
        *,
        tool: Callable[..., Any] | None = None,
        agent: Callable[..., Any] | None = None,
        workflow: Workflow | None = None,
        args: Mapping[str, Any] | Callable[[Any], Any] | None = None,
        after: str | Sequence[str] | None = None,
        when: Callable[[Any], object] | None = None,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        each: str | Callable[[Any], Any] | None = None,
        limit: int = 8,
        inputs: Sequence[str] | None = None,
    ) -> Workflow: ...
    def step(self, name: Any, **given: Any) -> Any:
        """Add a step; returns the workflow. It is one of

        - ``model=`` asks a model, or several in turn (the first, then its fallbacks); other parameters as
          ``agentloom.model`` takes them. ``prompt`` is a text in which ``{input}`` and ``{step name}`` are replaced, or
          a function of the state that returns a text or messages;
        - ``fn=`` runs a function of one argument, the ``State``. It may return ``goto(name)``. Without any of these
          words ``step`` is a decorator of such a function;
        - ``tool=``, ``agent=``, ``workflow=`` call one; ``args=`` gives the arguments, else they are fields by name.

        ``after`` names the steps that it follows (default: the one defined before; ``()``: it starts at once);
        ``when`` skips it where it is false; ``each`` and ``limit`` run it for the items of a list; ``loop`` names
        steps that it may go back to, and how often a run; ``inputs`` restricts what it sees; ``retry`` and ``timeout``
        (seconds, of each attempt) are for errors. Raises ``WorkflowError`` naming the step.
        """
        if isinstance(name, Workflow):
            raise WorkflowError(
                f"step() was given the workflow {name.name!r} alone",
                hint='.step("name", workflow=...) makes it a step',
            )
        if callable(name):
            self._add(str(getattr(name, "__name__", "step")), {"fn": name}, verify=False)
            return name
        if not any(given.get(kind) is not None for kind in KINDS):
            return _Decorator(self, name, given)
        return self._add(name, given, verify=False)

    def verify(
        self,
        name: str,
        *,
        inputs: Sequence[str],
        model: str | Sequence[str] | None = None,
        fn: Callable[[Any], Any] | None = None,
        agent: Callable[..., Any] | None = None,
        workflow: Workflow | None = None,
        **given: Any,
    ) -> Workflow:
        """Add a step that checks others without sharing their context: it runs as a child run that is given the
        fields in ``inputs`` and nothing else, not even the run's input unless it is named. Otherwise as ``step``."""
        ways = {"model": model, "fn": fn, "agent": agent, "workflow": workflow}
        return self._add(name, {**given, **ways, "inputs": inputs}, verify=True)

    def _add(self, name: str, given: Mapping[str, Any], *, verify: bool) -> Workflow:
        check_name(name, self._steps)
        template = given.get("template")
        if isinstance(template, str | os.PathLike) and given.get("prompt") is None:
            path = cast("str | os.PathLike[str]", template)
            given = {**given, "template": template_at(path, os.path.dirname(self._file))}
        step = step_of(name, given, verify=verify, before=next(reversed(self._steps), None))
        check_step(step)
        if step.kind == "fn":
            declare_annotations(step.target)
        self._open.pop(name, None)
        self._steps[name] = step
        self._built = None
        return self

    def build(self) -> Workflow:
        """Check the whole workflow; returns it. Raises ``WorkflowError`` with everything that is wrong."""
        self._graph()
        return self

    def _graph(self, within: tuple[Workflow, ...] = ()) -> Graph:
        if not self._steps and not self._open:
            raise WorkflowError(f"workflow {self.name!r} has no steps", hint="add one with .step(...)")
        if within == ():
            refuse_deep(self.name, self._steps)
        if self._built is None or self._open:
            graph = Graph.of(self._steps)
            raise_faults(self.name, [*findings(graph, self._open), *self._of_others((*within, self))])
            self._built = graph
        if within == () and any(step.kind == "workflow" for step in self._steps.values()):
            self._still_ends()
        return self._built

    def _still_ends(self) -> None:
        """The workflows in this one may have got steps since it was built: raise where one now runs itself."""
        done: set[int] = set()

        def visit(one: Workflow, within: tuple[Workflow, ...]) -> None:
            for fault in one._inside_itself(within):
                raise error_of(fault)
            done.add(id(one))
            for step in one._steps.values():
                if step.kind == "workflow" and id(step.target) not in done:
                    visit(step.target, (*within, step.target))

        visit(self, (self,))

    def _inside_itself(self, within: tuple[Workflow, ...]) -> Iterator[Fault]:
        for step in self._steps.values():
            if step.kind == "workflow" and any(step.target is outer for outer in within):
                yield Fault(
                    step.name, f"it runs workflow {step.target.name!r} inside itself", "loop= goes back"
                )

    def _of_others(self, within: tuple[Workflow, ...]) -> Iterator[Fault]:
        """What is wrong with the workflows in this one."""
        yield from self._inside_itself(within)
        for step in self._steps.values():
            if step.kind != "workflow" or any(step.target is outer for outer in within):
                continue
            try:
                step.target._graph(within)
            except WorkflowError as error:
                yield Fault(step.name, f"its workflow {step.target.name!r}: {error.message}", error.hint)

    # -- running -------------------------------------------------------------------------------------------------

    def run(
        self,
        input: object,  # noqa: A002 - the word of the contract
        *,
        seed: int | None = None,
        store: StoreLike = None,
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
        guard: GuardPolicy | None = None,
        secrets: Rules | None = None,
    ) -> Trace:
        """Run all steps and return the trace; ``trace.output`` is the last step's result, or where several branches
        end a mapping of theirs by name. ``seed`` seeds the run's own random draws and is not sent to any provider."""
        with UserFrames():
            return self.agent().run(
                input,
                seed=seed,
                store=store,
                tags=tags,
                conversation=conversation,
                guard=guard,
                secrets=secrets,
            )

    async def arun(
        self,
        input: object,  # noqa: A002 - the word of the contract
        *,
        seed: int | None = None,
        store: StoreLike = None,
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
        guard: GuardPolicy | None = None,
        secrets: Rules | None = None,
    ) -> Trace:
        """As ``run``, inside a running event loop."""
        with UserFrames():
            return await self.agent().arun(
                input,
                seed=seed,
                store=store,
                tags=tags,
                conversation=conversation,
                guard=guard,
                secrets=secrets,
            )

    def stream(self, input: object, **options: Any) -> WorkflowStream:  # noqa: A002 - the word of the contract
        """Run and tell what happens: an async iterator of events, the last of them ``Finished`` with the trace.

        ``async with graph.stream(...) as events`` cancels the run when the block is left early. ``options`` as
        ``run`` takes them. Raises what the run raises, after its last event.
        """
        return WorkflowStream(self.agent(), input, options)

    def stream_sync(self, input: object, **options: Any) -> Iterator[Event | Finished]:  # noqa: A002
        """As ``stream``, for programs without an event loop: the run goes on while the next event is asked for."""
        return in_steps(self.agent(), input, options)

    def draw(self, format: Literal["mermaid", "dot"] = "mermaid", *, run: Trace | None = None) -> str:  # noqa: A002
        """The graph as text for Mermaid or Graphviz. With the trace of a ``run``: which way it went."""
        graph = self._graph()
        return draw(graph, format, None if run is None else way_of(graph, self.name, run.journal))

    def agent(self) -> Agent[..., Any]:
        """The workflow as an agent. Raises ``WorkflowError`` as ``build`` does."""
        self._graph()
        made: Agent[..., Any] = Agent(self._execute, self.name)
        made.function = AgentFunction(
            self.name,
            self._execute,
            self._module,
            self.name,
            self._file,
            guard=self._guard,
            secrets=self._secrets,
        )
        return made

    def __call__(self, input: object) -> Coroutine[Any, Any, Any]:  # noqa: A002 - the word of the contract
        """Inside a run of an async agent: the workflow as a child run of it; awaited, its output. ``NoActiveRun``
        outside a run, ``WorkflowError`` as ``build`` does."""
        if current() is None:
            if left_out_here() is not None:
                return self._left_alone(input)
            raise NoActiveRun(
                f"workflow {self.name!r} was called outside a run",
                hint="its own run is started with .run(input) or .arun(input)",
                what=self.name,
            )
        return cast("Coroutine[Any, Any, Any]", self.agent()(input))

    async def _left_alone(self, given: object) -> object:
        """In code that is left alone: a workflow is always a run, this one is held in memory and forgotten."""
        agent = self.agent().function
        loop = asyncio.get_running_loop()
        recording = begin(agent, (given,), {}, store=MemoryStore(), options=RunOptions(), outer=loop)
        return await record_async(recording, agent)

    async def _execute(self, given: object) -> object:
        with use_profiles(*self._profiles):
            return await execute(self.name, self._graph(), given)


class _Decorator:
    """``@graph.step("name")``. Anything else that is done with it says that the step has nothing to run."""

    def __init__(self, workflow: Workflow, name: str, given: Mapping[str, Any]) -> None:
        self._workflow, self._name, self._given = workflow, name, given
        workflow._open[name] = None  # pyright: ignore[reportPrivateUsage]

    def __call__(self, function: F) -> F:
        self._workflow._add(self._name, {**self._given, "fn": function}, verify=False)  # pyright: ignore[reportPrivateUsage]
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise WorkflowError(
            f"step {self._name!r}: it has nothing to run",
            hint="give one of model=, fn=, tool=, agent= and workflow=, or decorate a function with it",
            step=self._name,
        )
