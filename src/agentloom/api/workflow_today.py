"""What happens inside a step, as it was before retries, fallbacks and typed outputs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from agentloom.api.hosts import model as ask_model
from agentloom.api.workflow_state import State
from agentloom.api.workflow_steps import Step
from agentloom.api.workflow_texts import Texts, text_of
from agentloom.errors import NotSupported, WorkflowError
from agentloom.runtime.answers import Answer


async def perform_model(step: Step, state: State) -> object:
    """Ask the model. Raises ``NotSupported`` for what the step asks beyond that."""
    if (
        len(step.models) > 1
        or step.output is not None
        or step.template is not None
        or step.params.get("stream")
    ):
        raise NotSupported(
            f"step {step.name!r}: fallbacks, retries, output=, template= and stream= are not supported yet"
        )
    ask = cast("Callable[..., Awaitable[Answer]]", ask_model)
    answer = await ask(step.models[0], _messages(step, state), **step.params)
    return answer.text


def _messages(step: Step, state: State) -> list[dict[str, Any]]:
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
        prompt = step.prompt.format_map(Texts(state))
    else:
        lines = [text_of(state["input"])] if "input" in state else []
        lines.extend(f"{name}: {text_of(state[name])}" for name in state if name != "input")
        prompt = "\n".join(lines)
    if not isinstance(prompt, str):
        return [*([{"role": "system", "content": step.system}] if step.system else []), *prompt]
    messages = [{"role": "user", "content": prompt}]
    return [{"role": "system", "content": step.system}, *messages] if step.system else messages


def _are_messages(prompt: object) -> bool:
    return isinstance(prompt, Sequence) and all(
        isinstance(item, Mapping) for item in cast("Sequence[object]", prompt)
    )
