"""What happens inside a model step: its messages, whom it asks and how often, and what its answer becomes."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agentloom.api.asking import Messages, Once, Question, ask, question_of
from agentloom.api.outputs import TypedAnswer
from agentloom.api.templates import Template, render_in
from agentloom.api.workflow_events import told_text
from agentloom.api.workflow_state import State
from agentloom.api.workflow_steps import Step
from agentloom.api.workflow_texts import Texts, text_of
from agentloom.errors import OutputError, TemplateError, WorkflowError
from agentloom.format.words import kind_of
from agentloom.runtime import host
from agentloom.runtime.answers import Answer, StreamedAnswer
from agentloom.runtime.boundary import open_async
from agentloom.runtime.scope import require

__all__ = ["faults_inside", "perform_model"]


async def perform_model(step: Step, state: State) -> object:
    """Ask the step's model, or its models in turn: the text of the answer, or its value where the step has ``output=``.

    Which of several models answered is kept with the run (state ``model:STEP``). Raises what ended the question.
    """
    question = _question(step, _messages(step, state))
    answer = await ask(question, _streamed(question) if step.params.get("stream") else None)
    if len(step.models) > 1:
        scope = require("Workflow")
        scope.session.engine.state(scope, f"model:{step.name}", question.answered, ())
    if step.output is None:
        return answer.text
    if answer.tool_calls:
        raise _only_tools(step, answer, question)
    return cast("TypedAnswer[Any]", answer).value


def faults_inside(step: Step) -> Iterator[tuple[str, str | None]]:
    """What can be told of a step's retries, timeout, models and output before it runs: text and remedy of each fault.
    ``NotSupported`` where a package is missing."""
    if step.timeout is not None and not _are_seconds(step.timeout):
        yield f"timeout={step.timeout!r}: seconds of each attempt, more than 0", None
    if step.kind == "tool" and step.retry is not None and step.retry.on is None:
        yield (
            "retry= does not say after which errors a tool may be called again",
            "retry=Retry(3, on=ConnectionError): only what cannot have had an effect, or an idempotent tool",
        )
    template: object = step.template
    if template is not None and not isinstance(template, Template):
        yield f"template= takes a Template or the path of a file, not {kind_of(template)}", None
    if step.kind == "model":
        try:
            _question(step, "")
        except (TypeError, ValueError) as error:
            yield str(error), None


def _are_seconds(timeout: object) -> bool:
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    return number and (timeout == math.inf or 0 < cast("float", timeout) <= sys.float_info.max)


def _question(step: Step, messages: Messages) -> Question:
    params = {name: value for name, value in step.params.items() if name != "stream"}
    repair = None if step.output is None else step.repair
    return question_of(
        step.models,
        messages,
        params,
        output=step.output,
        repair=repair,
        retry=step.retry,
        timeout=step.timeout,
    )


def _streamed(question: Question) -> Once:
    """Requests that are read piece by piece; who watches the workflow gets the pieces as they come."""

    async def perform(model: str, messages: Messages) -> Answer:
        spec = host.model_spec(model, messages, {**question.params, "stream": True})
        async with StreamedAnswer(cast(Any, open_async(spec, host.perform_model_stream))) as stream:
            async for piece in stream:
                told_text(piece)
            return stream.answer

    return perform


def _only_tools(step: Step, answer: Answer, question: Question) -> OutputError:
    names = ", ".join(call.name for call in answer.tool_calls)
    model = question.answered or step.models[0]
    return OutputError(
        f"step {step.name!r}: {model} called tools ({names}), and a model step with output= has nobody to answer them",
        text=answer.text,
        model=model,
        problems=[{"where": "", "what": f"it called {names}"}],
        answers=1,
        reason="tool calls",
        hint="let an agent (agent=) do the talk with tools, and a model step after it give the result its form",
    )


# -- messages ------------------------------------------------------------------------------------------------------


def _messages(step: Step, state: State) -> list[Mapping[str, Any]]:
    prompt = _prompt(step, state)
    first = [{"role": "system", "content": step.system}] if step.system else []
    return [*first, {"role": "user", "content": prompt}] if isinstance(prompt, str) else [*first, *prompt]


def _prompt(step: Step, state: State) -> str | Sequence[Mapping[str, Any]]:
    if step.template is not None:
        return _rendered(step, step.template, state)
    if callable(step.prompt):
        made: object = step.prompt(state)
        if isinstance(made, str) or _are_messages(made):
            return cast("str | Sequence[Mapping[str, Any]]", made)
        if inspect.iscoroutine(made):
            made.close()
            raise WorkflowError(
                f"step {step.name!r}: prompt= is an async function; it writes by the state alone",
                hint="make it a plain function; what must be asked is a step before",
                step=step.name,
            )
        raise WorkflowError(
            f"step {step.name!r}: its prompt function returned {kind_of(made)}",
            hint="return a text, or a list of messages with role and content",
            step=step.name,
        )
    if step.prompt is not None:
        return step.prompt.format_map(Texts(state))
    lines = [text_of(state["input"])] if "input" in state else []
    lines.extend(f"{name}: {text_of(state[name])}" for name in state if name != "input")
    return "\n".join(lines)


def _rendered(step: Step, template: Template, state: State) -> str:
    """The template with the fields that it names; those without a result are left out (Jinja2 can ask for one)."""
    variables = {name: state[name] for name, _ in template.fields if name in state}
    try:
        return render_in(template, variables, tuple(variables))
    except TemplateError as error:
        error.add_note(f"step {step.name!r}: the variables of its template are the fields of the state")
        raise


def _are_messages(prompt: object) -> bool:
    return isinstance(prompt, Sequence) and all(
        isinstance(item, Mapping) for item in cast("Sequence[object]", prompt)
    )
