"""Fields of the state in texts: ``{name}`` in prompts and arguments."""

from __future__ import annotations

from string import Formatter
from typing import Any

from agentloom.api.templates import as_text
from agentloom.api.workflow_state import State
from agentloom.errors import WorkflowError

__all__ = ["Texts", "filled", "text_of"]


class Texts(dict[str, str]):
    """The state's fields as texts, for ``str.format_map``. Each is read from the state when it is asked for."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state

    def __missing__(self, name: str) -> str:
        return text_of(_field(self._state, name))


def filled(text: str, state: State) -> Any:
    """``text`` with its fields; one that is nothing but a field gives the field's own value, not its text."""
    parts = list(Formatter().parse(text))
    if len(parts) == 1 and not parts[0][0] and parts[0][1] and not parts[0][2] and not parts[0][3]:
        return _field(state, parts[0][1])
    return text.format_map(Texts(state))


def _field(state: State, name: str) -> object:
    """A field that a text names. Raises ``WorkflowError`` where the step of that name did not run."""
    try:
        return state[name]
    except KeyError as error:
        raise WorkflowError(
            f"a text has {{{name}}}, but {error.args[0]}",
            hint="give a function of the state instead of the text: state.get(...) is None there",
        ) from None


def text_of(value: object) -> str:
    """As variables in templates are written (``templates.as_text``). ``WorkflowError`` where there is no form."""
    try:
        return as_text(value)
    except TypeError as error:
        raise WorkflowError(
            f"a result of type {type(value).__name__} has no place in a prompt's text: {error}",
            hint="give prompt= a function of the state that writes it as a text",
        ) from None
