"""``ask``, ``approve`` and ``signal`` for sync agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentloom.api.grants import Grant
from agentloom.api.people_asks import NO_DEFAULT, Deadline, approve_spec, ask_spec, here, signal_spec
from agentloom.runtime.boundary import call_inline

__all__ = ["approve", "ask", "signal"]


def ask(
    question: str,
    *,
    choices: Sequence[object] | None = None,
    schema: Any = None,
    evidence: object = None,
    deadline: Deadline = None,
    default: Any = NO_DEFAULT,
    approver: str | Iterable[str] | None = None,
) -> Any:
    """Ask a person; see ``agentloom.ask``."""
    return call_inline(ask_spec(question, choices, schema, evidence, deadline, default, approver), here)


def approve(
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
    """Ask whether a call of a tool may be made; see ``agentloom.approve``."""
    spec, granted = approve_spec(
        tool, args, kwargs, question=question, approver=approver, evidence=evidence, deadline=deadline,
        expires=expires,
    )  # fmt: skip
    return granted(call_inline(spec, here))


def signal(name: str, *, deadline: Deadline = None, default: Any = NO_DEFAULT) -> Any:
    """The next message called ``name``; see ``agentloom.signal``."""
    return call_inline(signal_spec(name, deadline, default), here)
