"""What is checked of a workflow before it runs: names, ways, fields, parameters. All faults are said at once."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator
from string import Formatter

from agentloom.api.workflow_alone import Fault, error_of
from agentloom.api.workflow_graph import Graph, knotted
from agentloom.api.workflow_steps import Step
from agentloom.errors import WorkflowError

__all__ = ["OF_ITEM", "fields_of", "findings", "parameters_of", "raise_faults"]

OF_ITEM = ("item", "index")
"""What the state of a step with ``each=`` has besides."""


def raise_faults(workflow: str, faults: list[Fault]) -> None:
    """Raise ``WorkflowError`` with all faults; nothing where there are none."""
    if not faults:
        return
    if len(faults) == 1:
        raise error_of(faults[0])
    lines = "".join(f"\n  {fault}" for fault in faults)
    raise WorkflowError(
        f"workflow {workflow!r} cannot be built: {len(faults)} faults{lines}",
        step=faults[0].step,
        steps=[fault.step for fault in faults],
    )


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
