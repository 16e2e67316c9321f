"""What is checked of a workflow before it runs: each step alone when it is added, all together when it is built."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any

from agentloom.api.step_model import faults_inside
from agentloom.api.workflow_graph import Graph, knotted
from agentloom.api.workflow_state import State
from agentloom.api.workflow_steps import Step
from agentloom.errors import WorkflowError

__all__ = ["Fault", "check_name", "check_step", "fields_of", "findings", "parameters_of", "raise_faults"]

OF_ITEM = ("item", "index")
"""What the state of a step with ``each=`` has besides."""

_MODEL_ONLY = ("prompt", "template", "system", "output")
_INSTEAD = {"messages": "prompt= takes a function that returns messages"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a step, and what to do."""

    step: str
    text: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"step {self.step!r}: {self.text}" + (f" ({self.hint})" if self.hint else "")


def raise_faults(workflow: str, faults: list[Fault]) -> None:
    """Raise ``WorkflowError`` with all faults; nothing where there are none."""
    if not faults:
        return
    if len(faults) == 1:
        raise _error(faults[0])
    lines = "".join(f"\n  {fault}" for fault in faults)
    raise WorkflowError(
        f"workflow {workflow!r} cannot be built: {len(faults)} faults{lines}",
        step=faults[0].step,
        steps=[fault.step for fault in faults],
    )


def _error(fault: Fault) -> WorkflowError:
    return WorkflowError(f"step {fault.step!r}: {fault.text}", hint=fault.hint, step=fault.step)


# -- one step, when it is added ------------------------------------------------------------------------------------


def check_name(name: str, taken: Iterable[str]) -> None:
    """Raise ``WorkflowError`` where ``name`` is no name for a step."""
    if name in taken or name == "input":
        raise _error(Fault(name, "the name is taken", "choose another name"))
    if not name.isidentifier():
        raise _error(Fault(name, f"a step's name is an identifier, such as {_identifier(name)!r}"))
    if hasattr(State, name) or name.startswith("_"):
        raise _error(Fault(name, f"state.{name} would not be its result", "choose another name"))


def check_step(step: Step) -> None:
    """Raise ``WorkflowError`` for what can be told of a step alone."""
    for fault in _alone(step):
        raise _error(fault)


def _alone(step: Step) -> Iterator[Fault]:
    name = step.name
    if step.kind == "model":
        for word, instead in _INSTEAD.items():
            if step.params.get(word):
                yield Fault(name, f"{word}= is not for steps", instead)
        if not step.models or not all(type(one) is str and one for one in step.models):
            yield Fault(name, "model= takes the name of a model, or several: the first, then its fallbacks")
        if step.prompt is not None and step.template is not None:
            yield Fault(name, "give prompt= or template=, not both")
    else:
        wrong = [word for word in _MODEL_ONLY if getattr(step, word) is not None] + list(step.params)
        if wrong:
            yield Fault(name, f"{', '.join(wrong)} belong to a model step")
    if isinstance(step.prompt, str) and (why := _no_template(step.prompt)):
        yield Fault(name, f"its prompt is no template: {why}", "write {{ and }} for braces")
    yield from _target(step)
    yield from _options(step)
    for text, hint in faults_inside(step):
        yield Fault(name, text, hint)


def _target(step: Step) -> Iterator[Fault]:
    name, target = step.name, step.target
    if step.kind == "fn":
        if not callable(target):
            yield Fault(name, f"fn= takes a function of the state, not a {type(target).__name__}")
        elif why := _not_of_one_argument(target):
            yield Fault(name, f"fn= takes one argument, the state: {why}", "def fn(state): ...")
    elif step.kind == "tool" and not hasattr(target, "__agentloom_tool__"):
        yield Fault(
            name, f"tool= takes a tool, not a {type(target).__name__}", "decorate it with @agentloom.tool"
        )
    elif step.kind == "agent" and not hasattr(target, "arun"):
        yield Fault(
            name, f"agent= takes an agent, not a {type(target).__name__}", "decorate it with @agentloom.agent"
        )
    elif step.kind == "workflow" and not hasattr(target, "build"):
        yield Fault(name, f"workflow= takes a Workflow, not a {type(target).__name__}")
    for key, text in (step.named or {}).items():
        if isinstance(text, str) and (why := _no_template(text)):
            yield Fault(name, f"args[{key!r}] is no template: {why}", "write {{ and }} for braces")
    if step.args is not None and step.kind in ("model", "fn"):
        yield Fault(name, f"args= is for tools, agents and workflows; a {step.kind} step sees the state")


def _options(step: Step) -> Iterator[Fault]:
    name = step.name
    for word in ("when", "each", "args"):
        given = getattr(step, word)
        if callable(given) and (why := _not_of_one_argument(given)):
            yield Fault(name, f"{word}= takes one argument, the state: {why}", "lambda state: ...")
    when: object = step.when
    if when is not None and not callable(when):
        yield Fault(name, f"when= takes a function of the state, not a {type(when).__name__}")
    if step.limit < 1:
        yield Fault(name, f"limit={step.limit}: at least one item is worked on at a time")
    if step.loop and step.kind != "fn":
        yield Fault(name, "only a step with fn= can go back; loop= is for it")
    if step.loop and step.each is not None:
        yield Fault(
            name, "a step that runs for each item of a list cannot choose; loop= is for a step after it"
        )
    for target, bound in step.loop.items():
        if type(bound) is not int or bound < 1:
            yield Fault(name, f"loop={{{target!r}: {bound!r}}}: a bound is a number from 1")
    if step.timeout is not None and not _can_be_stopped(step):
        yield Fault(
            name,
            f"timeout={step.timeout}: a synchronous {step.kind} cannot be stopped while it runs",
            "make it async def",
        )
    if step.verify and step.inputs is None:
        yield Fault(name, "a verify step names all that it may see", 'inputs=["draft"]')


def _can_be_stopped(step: Step) -> bool:
    if step.kind in ("model", "workflow"):
        return True
    function = getattr(step.target, "function", step.target)
    return inspect.iscoroutinefunction(inspect.unwrap(getattr(function, "function", function)))


def _no_template(text: str) -> str | None:
    try:
        list(Formatter().parse(text))
    except ValueError as error:
        return str(error)
    return None


def _not_of_one_argument(fn: Callable[..., Any]) -> str | None:
    try:
        inspect.signature(functools.partial(fn)).bind(None)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def _identifier(name: str) -> str:
    made = "".join(char if char.isalnum() else "_" for char in name) or "step"
    return made if made.isidentifier() else f"step_{made}"


# -- all steps, when the workflow is built -------------------------------------------------------------------------


def findings(graph: Graph, unused: Iterable[str] = ()) -> list[Fault]:
    """Everything that is wrong with the steps together. ``unused`` names decorators that decorated nothing."""
    found = [
        Fault(
            name,
            "it has nothing to run",
            "give model=, fn=, tool=, agent= or workflow=, or decorate a function",
        )
        for name in unused
    ]
    cycles, behind = knotted(graph.steps)
    for cycle in cycles:
        way = " -> ".join([*cycle, cycle[0]])
        found.append(
            Fault(
                cycle[0],
                f"it waits for itself: {way}",
                "a way back has a bound: loop= of the step that goes back",
            )
        )
    knots = {name for cycle in cycles for name in cycle}
    found += [
        Fault(name, "it is never reached: it waits for a step that waits for itself") for name in behind
    ]
    items = [step.name for step in graph.steps.values() if step.each is not None]
    for step in graph.steps.values():
        if items and step.name in OF_ITEM:
            found.append(
                Fault(step.name, f"the name is taken by the items of {items[0]!r}", "choose another name")
            )
        found += _edges(step, graph)
        if step.name not in knots and step.name not in behind:
            found += _fields(step, graph)
    return found


def _edges(step: Step, graph: Graph) -> Iterator[Fault]:
    for earlier in step.after:
        if earlier not in graph.steps:
            yield Fault(step.name, f"after= names {earlier!r}, which is no step", _near(earlier, graph.steps))
    for target in step.loop:
        if target not in graph.steps:
            yield Fault(step.name, f"loop= names {target!r}, which is no step", _near(target, graph.steps))
        elif target != step.name and target not in graph.before[step.name]:
            yield Fault(
                step.name,
                f"loop= goes back to {target!r}, which is not before it",
                f"before it there are {', '.join(graph.before[step.name]) or 'no steps'}",
            )


def _fields(step: Step, graph: Graph) -> Iterator[Fault]:
    seen = ("input", *graph.before[step.name])
    everything = (*seen, *graph.fellows[step.name])
    for name in step.inputs or ():
        if name not in everything:
            yield Fault(step.name, f"inputs= names {name!r}; before it there are {', '.join(seen)}")
    if isinstance(step.each, str) and step.each not in everything:
        yield Fault(step.name, f"each= names {step.each!r}; before it there are {', '.join(seen)}")
    if step.inputs is not None:
        seen = tuple(name for name in seen if name in step.inputs)
    if step.each is not None:
        seen += OF_ITEM
    for where, name in fields_of(step):
        if name not in seen:
            yield _unknown_field(step, where, name, seen, graph)
    yield from _parameters(step, seen)


def _unknown_field(step: Step, where: str, name: str, seen: tuple[str, ...], graph: Graph) -> Fault:
    known = ", ".join(seen) or "no fields"
    if name in graph.fellows[step.name]:
        text = f"{where} has {{{name}}}, which has no result on the first visit of the loop"
        return Fault(step.name, text, "give a function of the state: state.get(...) is None then")
    if step.inputs is not None and name in ("input", *graph.before[step.name]):
        return Fault(step.name, f"{where} has {{{name}}}, which is not among its inputs=; they are {known}")
    hint = "write {{ and }} for braces, or give a function of the state"
    if name in graph.steps:
        hint = f"name {name!r} in after= of {step.name!r}, or of a step before it"
    return Fault(step.name, f"{where} has {{{name}}}; before it there are {known}", hint)


def fields_of(step: Step) -> Iterator[tuple[str, str]]:
    """The fields of the state that a step's texts name, each with the words for where."""
    if isinstance(step.prompt, str):
        yield from (("its prompt", name) for name in _names(step.prompt))
    if step.template is not None and step.template.engine == "braces":
        yield from (("its template", name) for name, _ in step.template.fields)
    for key, text in (step.named or {}).items():
        if isinstance(text, str):
            yield from ((f"args[{key!r}]", name) for name in _names(text))


def _names(text: str) -> list[str]:
    return [part[1] for part in Formatter().parse(text) if part[1] is not None]


def _parameters(step: Step, seen: tuple[str, ...]) -> Iterator[Fault]:
    """A tool's or an agent's parameters must all be given: by ``args=`` or by fields of their names."""
    if step.kind not in ("tool", "agent") or (step.args is not None and step.named is None):
        return
    given = None if step.named is None else set(step.named)
    wanted = parameters_of(step)
    for name, parameter in wanted.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            yield Fault(step.name, f"parameter {name!r} of its {step.kind} cannot be given by name")
        elif parameter.default is parameter.empty and name not in (seen if given is None else given):
            known = (
                f"before it there are {', '.join(seen)}" if given is None else f"args= gives {_listed(given)}"
            )
            yield Fault(
                step.name,
                f"its {step.kind} needs {name!r}; {known}",
                f'args={{"{name}": ...}}' if given is None else None,
            )
    if given is not None and not _takes_any(step):
        for name in sorted(given - set(wanted)):
            yield Fault(step.name, f"args= gives {name!r}, which its {step.kind} does not take")


def parameters_of(step: Step) -> dict[str, inspect.Parameter]:
    """The parameters by name of a tool or an agent, without ``*args`` and ``**kwargs``."""
    every = _signature(step).parameters
    return {name: one for name, one in every.items() if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def _takes_any(step: Step) -> bool:
    return any(one.kind is one.VAR_KEYWORD for one in _signature(step).parameters.values())


def _signature(step: Step) -> inspect.Signature:
    return inspect.signature(step.target)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def _near(name: str, steps: Iterable[str]) -> str:
    steps = list(steps)
    near = difflib.get_close_matches(name, steps, 1)
    return f"did you mean {near[0]!r}?" if near else f"the steps are {', '.join(steps)}"
