"""One step of a workflow, performed once: what each kind of step does with the state, and a fn step's choice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.api.retries import attempted
from agentloom.api.step_model import perform_model
from agentloom.api.workflow_checks import OF_ITEM, parameters_of
from agentloom.api.workflow_events import Decided, here, tell
from agentloom.api.workflow_graph import Graph
from agentloom.api.workflow_state import State, state_of, why_absent
from agentloom.api.workflow_steps import Goto, Step
from agentloom.api.workflow_texts import filled
from agentloom.errors import WorkflowError
from agentloom.format.values import decode, encode
from agentloom.format.words import kind_of
from agentloom.runtime.agents import AgentFunction, call_child_async
from agentloom.runtime.places import place_of
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import Scope, require

__all__ = ["Done", "items_of", "perform", "wanted"]


@dataclass(frozen=True, slots=True)
class Done:
    """How a step ended: its result, and what it chose to go on with; or that its ``when=`` was false."""

    value: object = None
    choice: str | None = None
    skipped: bool = False


def wanted(step: Step, state: State, scope: Scope) -> bool:
    """What ``when=`` says of the state; recorded, and compared on replay."""
    if step.when is None:
        return True
    said = _plain(step, "when", step.when(state))
    return bool(_recorded(scope, f"when:{step.name}", bool(said), state, step.when))


def items_of(step: Step, state: State, scope: Scope) -> list[object]:
    """The list that ``each=`` gives, as a copy. How many there are is recorded, and compared on replay."""
    each = step.each
    items = (
        state[each]
        if isinstance(each, str)
        else _plain(step, "each", cast("Callable[..., Any]", each)(state))
    )
    if not isinstance(items, list | tuple):
        raise WorkflowError(
            f"step {step.name!r}: each= gives {kind_of(items)}, not a list",
            hint="a set or a mapping has no order to rely on: sorted(...) makes a list of it"
            if isinstance(items, set | frozenset | Mapping)
            else "list(...) makes one of a range, a generator or another iterable",
            step=step.name,
        )
    copied = cast("list[object]", decode(encode(list(cast("list[object]", items)), TYPES), TYPES))
    _recorded(scope, f"each:{step.name}", len(copied), state, step.target if isinstance(each, str) else each)
    return copied


async def perform(step: Step, state: State, scope: Scope, graph: Graph) -> Done:
    """Perform ``step`` once, or once an item of its list, with ``state``. Raises what it raises."""
    if step.verify:
        return Done(await _child_run(step, state, graph))
    return await _here(step, state, scope, graph)


async def _here(step: Step, state: State, scope: Scope, graph: Graph) -> Done:
    if step.kind == "model":
        return Done(await perform_model(step, state))
    if step.kind == "fn":
        return await _deterministic(step, state, scope, graph)
    return Done(await attempted(step.retry, step.timeout, lambda: _called(step, state)))


async def _called(step: Step, state: State) -> object:
    """Call the tool, agent or workflow of ``step``."""
    if step.kind == "workflow":
        value = step.target.agent()(_input(step, state))
    else:
        value = step.target(**_arguments(step, state))
    return await value if inspect.isawaitable(value) else value


# -- deterministic steps -------------------------------------------------------------------------------------------


async def _deterministic(step: Step, state: State, scope: Scope, graph: Graph) -> Done:
    async def once() -> object:
        value = step.target(state)
        if inspect.isawaitable(value):
            value = await asyncio.ensure_future(cast("asyncio.Future[Any]", value))
        return value

    value = await attempted(step.retry, step.timeout, once)
    choice = None
    others = tuple(step.loop)
    if isinstance(value, Goto):
        choice, value = value.name, value.value
        _check_choice(step, choice, graph)
        others = tuple(name for name in graph.choices(step.name) if name != choice)
    value = _recorded(scope, step.name, value, state, step.target, goto=choice, others=others)
    place = here()
    if place is not None and (choice is not None or others):
        tell(Decided(place.step, place.visit, place.item, choice, others))
    return Done(value, choice)


def _check_choice(step: Step, choice: str, graph: Graph) -> None:
    name = step.name
    why = None
    if step.each is not None:
        why = "it runs for each item of a list; let a step after it choose"
    elif step.verify:
        why = "a verify step cannot; let a step after it read its result and choose"
    elif choice not in graph.below[name] and choice not in step.loop:
        possible = ", ".join([*graph.below[name], *step.loop]) or "nothing: no step comes after it"
        why = f"it may choose {possible}"
    if why is not None:
        hint = None
        if choice in graph.before[name] or choice == name:
            hint = f'a way back needs a bound: loop={{"{choice}": 3}}'
        raise WorkflowError(f"step {name!r} chose {choice!r}; {why}", hint=hint, step=name, target=choice)


def _recorded(
    scope: Scope,
    name: str,
    value: object,
    state: State,
    function: object,
    *,
    goto: str | None = None,
    others: tuple[str, ...] = (),
) -> object:
    engine = scope.session.engine
    src = place_of(function, engine.places)
    return engine.state(scope, name, value, state.reads, src, goto=goto, others=others)


def _plain(step: Step, word: str, value: object) -> object:
    if inspect.iscoroutine(value):
        value.close()
        raise WorkflowError(
            f"step {step.name!r}: {word}= is an async function; it decides by the state alone",
            hint="make it a plain function; what must be asked is a step before",
            step=step.name,
        )
    return value


# -- steps that see only some fields -------------------------------------------------------------------------------


async def _child_run(step: Step, state: State, graph: Graph) -> object:
    """Perform a verify step as a child run, which is given its declared inputs and holds nothing else."""
    names = [*(step.inputs or ()), *(OF_ITEM if step.each is not None else ())]

    async def child(**given: object) -> object:
        alone = state_of(given, why_absent(state), visit=state.visit)
        done = await _here(step, alone, require("Workflow"), graph)
        return done.value

    module = str(getattr(step.target, "__module__", "agentloom"))
    function = AgentFunction(step.name, child, module, step.name, None)
    return await call_child_async(function, (), {name: state[name] for name in names if name in state})


def _arguments(step: Step, state: State) -> dict[str, Any]:
    """The arguments of a tool or an agent: those of ``args=``, or its parameters by name from the state."""
    if step.args is None:
        wanted = parameters_of(step)
        return {
            name: state[name]
            for name, parameter in wanted.items()
            if name in state or parameter.default is parameter.empty
        }
    given = _given(step, state)
    if not isinstance(given, Mapping):
        raise WorkflowError(
            f"step {step.name!r}: args= gives {kind_of(given)}",
            hint="return a mapping of parameters by name",
            step=step.name,
        )
    return dict(cast("Mapping[str, Any]", given))


def _input(step: Step, state: State) -> object:
    """The input of a workflow: what ``args=`` gives, the item, the declared inputs, or the run's input."""
    if step.args is not None:
        return _given(step, state)
    if step.each is not None:
        return state["item"]
    if step.inputs is None:
        return state["input"]
    return {name: state[name] for name in step.inputs if name in state}


def _given(step: Step, state: State) -> object:
    if step.named is None:
        return _plain(step, "args", cast("Callable[[State], object]", step.args)(state))
    return {
        key: filled(value, state) if isinstance(value, str) else value for key, value in step.named.items()
    }
