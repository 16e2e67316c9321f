"""Questions, approvals and signals as calls: what is asked for, and how an answer becomes a value. For async and sync
agents alike."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agentloom.api.grants import Grant, Wanted
from agentloom.api.people_terminal import answered_here
from agentloom.api.people_values import Reader, as_json, bare, members, problems_of, schema_of, yes_or_no
from agentloom.errors import NotSupported
from agentloom.format.values import decode, encode
from agentloom.format.words import kind_of
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.outside import Outside
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current
from agentloom.runtime.work import under_way

__all__ = ["NO_DEFAULT", "Deadline", "approve_spec", "ask_spec", "here", "here_async", "signal_spec"]

Deadline = float | dt.timedelta | dt.datetime | None
"""Seconds from now, or a time with a zone; None: none."""


class _NoDefault:
    def __repr__(self) -> str:
        return "..."


NO_DEFAULT: Any = _NoDefault()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MOST_SHOWN = 200  # characters of an argument in the question that is made for an approval


def here(call: Call) -> object:
    """The answer of who is at the terminal, for runs that no other process could go on with. ``NotSupported`` where
    nobody is."""
    return answered_here(call)


async def here_async(call: Call) -> object:
    """As ``here``, for an awaited call."""
    return answered_here(call)


def _in_a_run(what: str) -> None:
    """``NotSupported`` in the body of a tool, ``NoActiveRun`` outside of every run."""
    if current() is None and under_way() is not None:
        raise NotSupported(
            f"{what}() was called in the body of a tool or of other host work, which cannot be left in the middle",
            hint="ask in the code of the agent, before the tool is called: approve(tool, ...)",
        )
    taking_part(what)


# -- ask -------------------------------------------------------------------------------------------------------------


def ask_spec(
    question: str,
    choices: Sequence[object] | None,
    schema: object,
    evidence: object,
    deadline: Deadline,
    default: object,
    approver: str | Iterable[str] | None,
) -> CallSpec:
    """A question to a person. ``TypeError``, ``ValueError`` for what cannot be asked."""
    _in_a_run("ask")
    if not isinstance(cast("object", question), str) or not question.strip():
        raise ValueError("ask() takes the question, a text that says something")
    request: dict[str, object] = {"question": question}
    facts: dict[str, object] = {"question": question}
    reader: Reader | None = None
    if choices is not None:
        if schema is not None:
            raise ValueError("ask() takes choices= or schema=, not both")
        facts["choices"] = request["choices"] = _choices(choices)
    if schema is not None:
        facts["schema"], reader = schema_of(schema)
        request["schema"] = bare(facts["schema"])
    _shared(request, facts, evidence, approver)
    due = _due(deadline, request, "deadline")
    made: Callable[[], object] | None = None
    if default is not NO_DEFAULT:
        made = _default(default, facts, request, due)
    outside = Outside("answer", facts=facts, due=due, default=made, read=_Read(facts, reader))
    return CallSpec("ask", "ask", request, outside=outside)


def _choices(choices: object) -> list[object]:
    listed = list(cast("Sequence[object]", choices)) if isinstance(choices, Sequence) else []
    if isinstance(choices, str) or not listed:
        raise ValueError("choices= is a list of what can be answered, with at least one")
    for number, one in enumerate(listed):
        finite = not isinstance(one, float) or math.isfinite(one)
        if not isinstance(one, str | int | float | bool | None) or not finite:
            raise ValueError(
                f"choices= holds {kind_of(one)}: texts, numbers, true, false and null can be chosen"
            )
        if any(type(one) is type(other) and one == other for other in listed[:number]):
            raise ValueError(f"choices= holds {one!r} twice")
    return listed


def _plain(value: object) -> object:
    """``value`` as it can be looked at without its types: what a question keeps of it."""
    return decode(encode(value, TYPES), None)


def _shared(
    request: dict[str, object],
    facts: dict[str, object],
    evidence: object,
    approver: str | Iterable[str] | None,
) -> None:
    """What questions and approvals have in common."""
    if evidence is not None:
        request["evidence"] = evidence
        facts["evidence"] = _plain(evidence)
    if approver is not None:
        names = [approver] if isinstance(approver, str) else list(approver)
        if not names or not all(isinstance(cast("object", one), str) and one for one in names):
            raise ValueError("approver= is a name or a role, or a list of them")
        facts["approver"] = request["approver"] = names


def _default(
    default: object, facts: dict[str, object], request: dict[str, object], due: int | None
) -> Callable[[], object]:
    if due is None:
        raise ValueError("ask(default=) is what holds when deadline= has passed; give that too")
    plain = _plain(as_json(default) if "schema" in facts else default)
    problems = problems_of(
        plain, choices=cast(Any, facts.get("choices")), schema=cast(Any, facts.get("schema"))
    )
    if problems:
        raise ValueError(f"default={default!r} is none that could be answered: {problems[0]['what']}")
    facts["default"] = request["default"] = plain
    return lambda: default


@dataclass(frozen=True, slots=True)
class _Read:
    """Makes of what was answered the value of the call."""

    facts: dict[str, object]
    reader: Reader | None

    def __call__(self, said: object) -> object:
        choices, schema = cast(Any, self.facts.get("choices")), cast(Any, self.facts.get("schema"))
        problems = problems_of(said, choices=choices, schema=schema)
        if problems:
            raise ValueError(
                f"the answer is none that was asked for: {problems[0]['where']} {problems[0]['what']}"
            )
        return said if self.reader is None else self.reader(said)


# -- approve ---------------------------------------------------------------------------------------------------------


def approve_spec(
    tool: Any,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    question: str | None,
    approver: str | Iterable[str] | None,
    evidence: object,
    deadline: Deadline,
    expires: Deadline,
) -> tuple[CallSpec, Callable[[object], Grant]]:
    """The question whether a call may be made; and what makes a grant of its answer."""
    _in_a_run("approve")
    own: dict[str, object] = {
        "question": question, "approver": approver, "evidence": evidence, "deadline": deadline, "expires": expires,
    }  # fmt: skip
    _refuse_shared_words(tool, [word for word, value in own.items() if value is not None])
    if isinstance(tool, functools.partial):
        tool, args, kwargs = tool.func, (*tool.args, *args), {**tool.keywords, **kwargs}
    wanted = Wanted.of(tool, args, kwargs)
    approval: dict[str, object] = {"tool": wanted.name, "args": wanted.shown, "schema": wanted.schema}
    request: dict[str, object] = {"approval": {**approval, "args": wanted.asked}}
    if question is None:
        given = ", ".join(f"{name}={_shown(value)}" for name, value in wanted.shown.items())
        question = f"Approve {wanted.name}({given})?"
    else:
        request["question"] = question
    facts: dict[str, object] = {"question": question, "approval": _plain(approval)}
    _shared(request, facts, evidence, approver)
    until = _due(expires, request, "expires")
    due = _due(deadline, request, "deadline")
    if until is not None:
        facts["expires"] = until
        due = until if due is None else min(due, until)
    made: Callable[[], object] | None = None
    if due is not None:
        late = {"granted": False, "by": None, "at": due, "reason": "nobody answered in time"}
        facts["default"] = late
        made = lambda: late  # noqa: E731 - what Outside asks for
    outside = Outside("answer", facts=facts, due=due, default=made, read=_granted)

    def grant(said: object) -> Grant:
        answer = cast("dict[str, Any]", said)
        return Grant(
            wanted, granted=answer["granted"] is True, by=answer.get("by"), at=answer.get("at") or 0,
            reason=answer.get("reason"), expires=until,
        )  # fmt: skip

    return CallSpec("ask", "approve", request, outside=outside), grant


def _refuse_shared_words(tool: Any, words: list[str]) -> None:
    if not callable(tool):
        return
    shared = [word for word in words if word in inspect.signature(tool).parameters]
    if shared and not isinstance(tool, functools.partial):
        raise TypeError(
            f"approve({shared[0]}=): the tool has a parameter of that name too;"
            f" say whose it is with approve(functools.partial(tool, {shared[0]}=...), ...)"
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def _granted(said: object) -> dict[str, object]:
    answer = members(said)
    granted = answer.get("granted") if answer else yes_or_no(said)
    if not isinstance(granted, bool):
        raise ValueError(f"an approval is yes or no, not {said!r}")  # noqa: TRY004 - of the value, not of its type
    return {"by": None, "at": 0, **answer, "granted": granted}


# -- signal ----------------------------------------------------------------------------------------------------------


def signal_spec(name: str, deadline: Deadline, default: object) -> CallSpec:
    """A wait for a named message."""
    _in_a_run("signal")
    if not isinstance(cast("object", name), str) or not name:
        raise ValueError("signal() takes the name of the message, a text")
    request: dict[str, object] = {"name": name}
    facts: dict[str, object] = {"name": name}
    due = _due(deadline, request, "deadline")
    made: Callable[[], object] | None = None
    if default is not NO_DEFAULT:
        if due is None:
            raise ValueError("signal(default=) is what holds when deadline= has passed; give that too")
        facts["default"] = request["default"] = _plain(default)
        made = lambda: default  # noqa: E731 - what Outside asks for
    return CallSpec("signal", name, request, outside=Outside("signal", name, facts, due, made))


# -- times -----------------------------------------------------------------------------------------------------------


def _due(deadline: object, request: dict[str, object], what: str) -> int | None:
    """When that is by the clock of the run, nanoseconds since 1970; what was given goes into the request."""
    if deadline is None:
        return None
    if isinstance(deadline, dt.datetime):
        if deadline.tzinfo is None:
            raise ValueError(
                f"{what}={deadline!r} has no time zone: give an aware datetime, or seconds from now"
            )
        request[what] = deadline
        return (deadline - _EPOCH) // dt.timedelta(microseconds=1) * 1000
    seconds = deadline.total_seconds() if isinstance(deadline, dt.timedelta) else deadline
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(
            f"{what}= is a number of seconds, a timedelta or an aware datetime, not {kind_of(deadline)}"
        )
    if not 0 < seconds < 10**10:
        raise ValueError(f"{what}={deadline!r}: a time that is yet to come")
    request[what] = seconds
    scope = taking_part(what)
    now = time.time_ns() if scope is None else scope.session.guard.start + scope.session.engine.vt
    return now + round(seconds * 1e9)
