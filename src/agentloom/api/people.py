"""People and messages in a run: ``ask``, ``approve``, ``signal``. The run is left where it waits, and holds no process;
whoever answers resumes it. ``answer``, ``send_signal`` and ``inbox`` are the other side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentloom.api.answering import answer, inbox, send_signal
from agentloom.api.grants import Grant
from agentloom.api.people_asks import (
    NO_DEFAULT,
    Deadline,
    approve_spec,
    ask_spec,
    here_async,
    signal_spec,
)
from agentloom.runtime.asks import OpenAsk
from agentloom.runtime.boundary import call_async

__all__ = ["Grant", "OpenAsk", "answer", "approve", "ask", "inbox", "send_signal", "signal"]


async def ask(
    question: str,
    *,
    choices: Sequence[object] | None = None,
    schema: Any = None,
    evidence: object = None,
    deadline: Deadline = None,
    default: Any = NO_DEFAULT,
    approver: str | Iterable[str] | None = None,
) -> Any:
    """Ask a person, and return the answer: a text; with ``choices`` one of them; with ``schema`` (a type or a JSON
    Schema) a value of it.

    ``evidence`` is what there is to look at. ``deadline`` (seconds, a timedelta, an aware datetime): when the run goes
    on without an answer, with ``default``, else ``Expired`` is raised. ``approver``: names or roles of those who may
    answer. Every question has an id of its own; several may be open at once.
    """
    spec = ask_spec(question, choices, schema, evidence, deadline, default, approver)
    return await call_async(spec, here_async)


async def approve(
    tool: Any,
    /,
    *args: Any,
    question: str | None = None,
    approver: str | Iterable[str] | None = None,
    evidence: object = None,
    deadline: Deadline = None,
    expires: Deadline = None,
    **kwargs: Any,
) -> Grant:
    """Ask a person whether this call of a tool may be made; returns a ``Grant``, which is true where it may.

    ``grant()`` then makes the call, once; ``grant(tool, ...)`` a call that has to be the very same. The grant is bound
    to the arguments, to the types that the tool takes, and to ``expires``. Nobody says anything before ``deadline``:
    it is denied. Arguments that are called like one of these words: ``approve(functools.partial(tool, ...))``.
    """
    spec, granted = approve_spec(
        tool, args, kwargs, question=question, approver=approver, evidence=evidence, deadline=deadline,
        expires=expires,
    )  # fmt: skip
    return granted(await call_async(spec, here_async))


async def signal(name: str, *, deadline: Deadline = None, default: Any = NO_DEFAULT) -> Any:
    """The next message called ``name`` that ``send_signal`` sends to this run, or sent before; oldest first, each once.
    ``deadline`` and ``default`` as of ``ask``."""
    return await call_async(signal_spec(name, deadline, default), here_async)
