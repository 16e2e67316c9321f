"""What can be told of one step alone, when it is added to a workflow."""

from __future__ import annotations

import functools
import inspect
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any, cast

from agentloom.api.step_model import faults_inside
from agentloom.api.workflow_state import State
from agentloom.api.workflow_steps import Step
from agentloom.errors import WorkflowError
from agentloom.format.words import kind_of
from agentloom.runtime.sendable import half_pair

__all__ = ["Fault", "check_name", "check_step", "check_workflow_name", "error_of"]

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


def error_of(fault: Fault) -> WorkflowError:
    """The fault as an error."""
    return WorkflowError(f"step {fault.step!r}: {fault.text}", hint=fault.hint, step=fault.step)


def check_name(name: str, taken: Iterable[str]) -> None:
    """Raise ``WorkflowError`` where ``name`` is no name for a step."""
    if type(name) is not str:
        raise WorkflowError(f"a step's name is a text, not {kind_of(name)}")
    if name in taken or name == "input":
        raise error_of(Fault(name, "the name is taken", "choose another name"))
    if not name.isidentifier():
        raise error_of(Fault(name, f"a step's name is an identifier, such as {_identifier(name)!r}"))
    if unicodedata.normalize("NFKC", name) != name:
        plain = unicodedata.normalize("NFKC", name)
        raise error_of(Fault(name, f"Python reads state.{name} as state.{plain}", f"name it {plain!r}"))
    if hasattr(State, name) or name.startswith("_"):
        raise error_of(Fault(name, f"state.{name} would not be its result", "choose another name"))


def check_workflow_name(name: object) -> None:
    """Raise ``WorkflowError`` where ``name`` is no text that runs can be listed under."""
    if type(name) is not str or not name.strip() or half_pair(name) is not None:
        raise WorkflowError(f"a workflow's name is a text that runs are listed under, not {name!r}")


def check_step(step: Step) -> None:
    """Raise ``WorkflowError`` for what can be told of a step alone."""
    for fault in _alone(step):
        raise error_of(fault)


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
            yield Fault(name, f"fn= takes a function of the state, not {kind_of(target)}")
        elif hasattr(target, "build"):
            yield Fault(name, "fn= takes a function of the state", "workflow= takes a Workflow")
        elif why := _not_of_one_argument(target):
            yield Fault(name, f"fn= takes one argument, the state: {why}", "def fn(state): ...")
    elif step.kind == "tool" and not hasattr(target, "__agentloom_tool__"):
        yield Fault(name, f"tool= takes a tool, not {kind_of(target)}", "decorate it with @agentloom.tool")
    elif step.kind == "agent" and hasattr(target, "build"):
        yield Fault(name, "agent= takes an agent", "workflow= takes a Workflow")
    elif step.kind == "agent" and not hasattr(target, "arun"):
        yield Fault(
            name, f"agent= takes an agent, not {kind_of(target)}", "decorate it with @agentloom.agent"
        )
    elif step.kind == "workflow" and not hasattr(target, "build"):
        yield Fault(name, f"workflow= takes a Workflow, not {kind_of(target)}")
    for key, text in (step.named or {}).items():
        if step.kind in ("tool", "agent") and type(cast("object", key)) is not str:
            yield Fault(name, f"args= has the key {key!r}; its keys are names of parameters")
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
        yield Fault(name, f"when= takes a function of the state, not {kind_of(when)}")
    if type(step.limit) is not int or step.limit < 1:
        yield Fault(name, f"limit={step.limit!r}: at least one item is worked on at a time")
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
        parts = list(Formatter().parse(text))
        text.encode()
        for _, field, spec, conversion in parts:
            if field is None or not field.isidentifier():
                continue  # no field of the state: the check of the whole graph says which there are
            if conversion not in (None, "r", "s", "a"):
                return f"!{conversion} of {{{field}}} is none of !r, !s and !a"
            if spec and "{" in spec:
                return f"{{{field}}} has another field in it"
            format("", spec or "")
    except UnicodeEncodeError:
        return "it has half of a surrogate pair, which is no character"
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
