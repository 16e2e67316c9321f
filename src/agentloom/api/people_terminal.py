"""Questions on the terminal: what is shown, and what a line that somebody types is as an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from agentloom.api.people_values import problems_of, value_of_text, yes_or_no
from agentloom.errors import NotSupported
from agentloom.runtime.asks import OpenAsk, asked_by
from agentloom.runtime.calls import Call
from agentloom.runtime.guard_input import terminal_reader
from agentloom.runtime.left_out import left_out_here
from agentloom.runtime.waits import refuse_wait

__all__ = ["answered_here", "prompt_of", "typed"]


def answered_here(call: Call) -> object:
    """The value of ``call`` from who is at the terminal of this process. ``NotSupported`` where nobody is, and for what
    no person says; ``EOFError`` where nothing more is typed."""
    read = terminal_reader()
    outside = call.spec.outside
    if read is None or outside is None or outside.kind != "answer":
        left = left_out_here()
        if left is not None:
            raise NotSupported(
                f"{call.type} {call.name} waits for somebody, and nothing is recorded that could be gone on with"
                f" ({left.why})",
                hint="record the run",
            )
        raise refuse_wait(call)
    said = typed(asked_by(call, run="", agent=""), read)
    return said if outside.read is None else outside.read(said)


def typed(ask: OpenAsk, read: Callable[[], str]) -> object:
    """Ask until a line is an answer; its value. ``read`` gives a line, or raises ``EOFError``."""
    _tell(prompt_of(ask))
    while True:
        value = value_of_text(ask, read())
        if ask.approval is not None:
            problems = [] if yes_or_no(value) is not None else [{"where": "", "what": "yes or no?"}]
        else:
            problems = problems_of(value, choices=ask.choices, schema=ask.schema)
        if not problems:
            return value
        for problem in problems:
            _tell(": ".join(text for text in (problem["where"], problem["what"]) if text) + "\n> ")


def prompt_of(ask: OpenAsk) -> str:
    """The question with what there is to look at, ending where somebody types."""
    lines = [ask.question]
    if ask.evidence is not None:
        lines += ["  " + line for line in _shown(ask.evidence).splitlines()]
    if ask.approval is not None:
        lines.append(f"  {ask.approval.get('tool')}({_shown(ask.approval.get('args'))})")
        lines.append("  yes, no")
    elif ask.choices is not None:
        lines.append("  " + ", ".join(str(one) for one in ask.choices))
    elif ask.schema is not None:
        lines.append("  " + json.dumps(ask.schema, ensure_ascii=False))
    if ask.approver:
        lines.append("  for " + " or ".join(ask.approver))
    return "\n".join(lines) + "\n> "


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, default=repr)


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
