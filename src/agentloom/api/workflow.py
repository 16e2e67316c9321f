"""``Workflow``: model steps and deterministic steps, run one after the other.

A model step without ``prompt`` sends the run's input as the user message; when steps have run before it, their
results follow the input, each as a line with the step's name and a colon and then the result. A deterministic step
gets the ``State``; it really runs on replay too, and its result is compared with the recorded one.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, cast

from agentloom.api.agent import Agent
from agentloom.api.hosts import model as ask_model
from agentloom.api.trace import Trace
from agentloom.errors import WorkflowError
from agentloom.format.values import decode, encode
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.answers import Answer
from agentloom.runtime.places import place_of
from agentloom.runtime.registry import TYPES, declare_annotations
from agentloom.runtime.scope import entered, require
from agentloom.store import Store

__all__ = ["State", "Workflow"]


class State(Mapping[str, Any]):
    """What a step sees: the run's ``input`` and the results of the steps before, by name.

    ``state["classify"]`` and ``state.classify`` are the same. Each read gives a fresh copy and is noted: the trace
    says which fields a deterministic step read.
    """

    def __init__(self, given: object, results: Mapping[str, object]) -> None:
        self._fields: dict[str, object] = {"input": given, **results}
        self._reads: list[str] = []

    def __getitem__(self, name: str) -> Any:
        if name not in self._fields:
            raise KeyError(f"{name!r} is not a field of the state; it has {', '.join(self._fields)}")
        if name not in self._reads:
            self._reads.append(name)
        return decode(encode(self._fields[name], TYPES), TYPES)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields read so far, in the order of their first reading."""
        return tuple(self._reads)


Prompt = str | Callable[[State], Any]


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    model: str | None
    fn: Callable[[State], Any] | None
    prompt: Prompt | None
    system: str | None
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Workflow:
    """A sequence of named steps. ``name`` is what its runs are listed under."""

    def __init__(self, name: str = "workflow") -> None:
        self.name = name
        self._steps: dict[str, _Step] = {}
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # who makes the workflow
        self._module = str(caller.f_globals.get("__name__", "?"))
        self._file = os.path.abspath(caller.f_code.co_filename)

    def step(
        self,
        name: str,
        *,
        model: str | None = None,
        fn: Callable[[Any], Any] | None = None,
        prompt: Prompt | None = None,
        system: str | None = None,
        **params: Any,
    ) -> Workflow:
        """Add a step: ``model=`` asks a model (``params`` as ``agentloom.model`` takes them), ``fn=`` runs a function
        of one argument, the ``State``.

        ``prompt`` is a text in which ``{input}`` and ``{step name}`` are replaced, or a function of the state that
        returns a text or messages. Raises ``WorkflowError`` naming the step.
        """
        if (model is None) == (fn is None):
            raise WorkflowError(f"step {name!r}: give exactly one of model= and fn=", step=name)
        if name in self._steps or name == "input":
            raise WorkflowError(f"step {name!r}: the name is taken", hint="choose another name", step=name)
        if not name.isidentifier():
            raise WorkflowError(
                f"step {name!r}: a step's name is an identifier, such as {_identifier(name)!r}", step=name
            )
        if hasattr(State, name) or name.startswith("_"):
            raise WorkflowError(
                f"step {name!r}: state.{name} would not be its result", hint="choose another name", step=name
            )
        if fn is not None:
            given = {**params, "prompt": prompt, "system": system}
            wrong = ", ".join(key for key, value in given.items() if value is not None or key in params)
            if wrong:
                raise WorkflowError(f"step {name!r}: {wrong} belong to a model step", step=name)
            _check_one_argument(name, fn)
            declare_annotations(fn)
        for word, instead in _INSTEAD.items():
            if params.get(word):
                raise WorkflowError(f"step {name!r}: {word}= is not for steps", hint=instead, step=name)
        if isinstance(prompt, str):
            _check_template(name, prompt, ["input", *self._steps])
        self._steps[name] = _Step(name, model, fn, prompt, system, params)
        return self

    def run(
        self,
        input: object,  # noqa: A002 - the word of the contract
        *,
        seed: int | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
    ) -> Trace:
        """Run all steps and return the trace; ``trace.output`` is the last step's result. ``seed`` seeds the run's
        own random draws and is not sent to any provider."""
        return self.agent().run(input, seed=seed, store=store, tags=tags, conversation=conversation)

    async def arun(
        self,
        input: object,  # noqa: A002 - the word of the contract
        *,
        seed: int | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
    ) -> Trace:
        """As ``run``, inside a running event loop."""
        return await self.agent().arun(input, seed=seed, store=store, tags=tags, conversation=conversation)

    def agent(self) -> Agent[..., Any]:
        """The workflow as an agent. Raises ``WorkflowError`` when it has no steps."""
        if not self._steps:
            raise WorkflowError(f"workflow {self.name!r} has no steps", hint="add one with .step(...)")
        made: Agent[..., Any] = Agent(self._execute, self.name)
        made.function = AgentFunction(self.name, self._execute, self._module, self.name, self._file)
        return made

    async def _execute(self, given: object) -> object:
        results: dict[str, object] = {}
        for step in self._steps.values():
            results[step.name] = await self._execute_step(step, given, results)
        return results[next(reversed(results))]

    async def _execute_step(self, step: _Step, given: object, results: Mapping[str, object]) -> object:
        scope = require("Workflow")
        with entered(scope.child(step.name)):
            try:
                return await _perform(step, State(given, results))
            except Exception as error:
                error.add_note(f"in step {step.name!r} of workflow {self.name!r}")
                raise


async def _perform(step: _Step, state: State) -> object:
    if step.fn is not None:
        return await _deterministic(step.name, step.fn, state)
    # Which overload it is the parameters say only when run; steps do not stream.
    ask = cast("Callable[..., Awaitable[Answer]]", ask_model)
    answer = await ask(cast(str, step.model), _messages(step, state), **step.params)
    return answer.text


async def _deterministic(name: str, fn: Callable[[State], Any], state: State) -> object:
    scope = require("Workflow")
    value = fn(state)
    if inspect.isawaitable(value):
        value = await asyncio.ensure_future(cast("asyncio.Future[Any]", value))
    engine = scope.session.engine
    return engine.state(scope, name, value, state.reads, src=place_of(fn, engine.places))


def _messages(step: _Step, state: State) -> list[dict[str, Any]]:
    prompt: Any
    if callable(step.prompt):
        prompt = step.prompt(state)
        if not isinstance(prompt, str) and not _are_messages(prompt):
            raise WorkflowError(
                f"step {step.name!r}: its prompt function returned a {type(prompt).__name__}",
                hint="return a text, or a list of messages with role and content",
                step=step.name,
            )
    elif step.prompt is not None:
        prompt = step.prompt.format_map(_Texts(state))
    else:
        prompt = _default_prompt(state)
    if not isinstance(prompt, str):
        return [*([{"role": "system", "content": step.system}] if step.system else []), *prompt]
    messages = [{"role": "user", "content": prompt}]
    return [{"role": "system", "content": step.system}, *messages] if step.system else messages


def _default_prompt(state: State) -> str:
    lines = [_text(state["input"])]
    lines.extend(f"{name}: {_text(state[name])}" for name in state if name != "input")
    return "\n".join(lines)


class _Texts(dict[str, str]):
    """The state's fields as texts, for ``str.format_map``."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state

    def __missing__(self, name: str) -> str:
        return _text(self._state[name])


def _are_messages(prompt: object) -> bool:
    return isinstance(prompt, Sequence) and all(
        isinstance(item, Mapping) for item in cast("Sequence[object]", prompt)
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise WorkflowError(
            f"a result of type {type(value).__name__} has no place in a prompt's text: {error}",
            hint="give prompt= a function of the state that writes it as a text",
        ) from None


_INSTEAD = {
    "messages": "prompt= takes a function that returns messages",
    "stream": "a step's result is the whole text",
}


def _check_template(name: str, prompt: str, known: list[str]) -> None:
    try:
        fields = [part[1] for part in Formatter().parse(prompt) if part[1] is not None]
    except ValueError as error:
        raise WorkflowError(
            f"step {name!r}: its prompt is no template: {error}", hint="write {{ and }} for braces", step=name
        ) from None
    for wanted in fields:
        if wanted not in known:
            raise WorkflowError(
                f"step {name!r}: its prompt has {{{wanted}}}; before it there are {', '.join(known)}",
                hint="write {{ and }} for braces, or give prompt= a function of the state",
                step=name,
            )


def _identifier(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name) or "step"


def _check_one_argument(name: str, fn: Callable[..., Any]) -> None:
    try:
        inspect.signature(functools.partial(fn)).bind(None)
    except (TypeError, ValueError) as error:
        raise WorkflowError(
            f"step {name!r}: fn= takes one argument, the state: {error}", hint="def fn(state): ...", step=name
        ) from None
