"""Answers and messages to runs from outside: checked, then kept in the run's mail until the run goes on."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, cast

from agentloom.api.approvers import may_answer, roles_of
from agentloom.api.people_values import as_json, members, problems_of, value_of_text, yes_or_no
from agentloom.api.recording_mode import StoreLike
from agentloom.errors import (
    AmbiguousAsk,
    InvalidAnswer,
    LateAnswer,
    MailTaken,
    NotSupported,
    ReusedAnswer,
    RunNotFound,
    StaleAnswer,
    StoreFailed,
    TraceError,
    UnauthorisedAnswer,
    UnknownAsk,
    ValueRefused,
)
from agentloom.format.journal import Journal
from agentloom.format.values import Tree, decode, encode
from agentloom.format.words import moment
from agentloom.runtime.asks import Asked, OpenAsk, asks_of, with_mail
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_rules import rules_of_record
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current
from agentloom.store import Mail, Store, open_store
from agentloom.store.mail import said

__all__ = ["answer", "inbox", "send_signal", "waiting"]

_log = logging.getLogger("agentloom.people")
_NO_RESULT = object()
_MOST_NAME = 200


def answer(
    run: str,
    value: object,
    *,
    ask: str | int | None = None,
    by: str | None = None,
    roles: Iterable[str] = (),
    result: object = _NO_RESULT,
    store: StoreLike = None,
    via: str = "api",
    from_text: bool = False,
) -> Mail:
    """Answer a question that a run asks. It is kept durably when this returns; whoever resumes the run delivers it.

    ``run``: an id, a unique prefix, a tag, ``last``. ``ask``: the id of the question; needed where several are open.
    ``by``: who answers, as far as the caller knows; ``roles``: what they may answer for, beside what ``people.toml``
    of the store says. ``result``: of a call in doubt that did happen, what it gave. ``from_text``: ``value`` is a line
    that somebody typed, to be read as the question wants it.

    Refused with nothing changed, each an ``AnswerRefused``: ``UnknownAsk``, ``AmbiguousAsk``, ``LateAnswer``,
    ``StaleAnswer``, ``ReusedAnswer`` (also of all but one who answer at once), ``UnauthorisedAnswer``,
    ``InvalidAnswer``. ``ValueRefused`` for a value that cannot be kept, or holds a secret.
    """
    _check_name("by", by)
    chosen, run, journal = _opened(run, store, "answer")
    found = _the_one(chosen, asks_of(journal), None if ask is None else str(ask))
    at = time.time_ns()
    if found.is_due(at):
        raise _late(found)
    if not may_answer(found.approver, by, [*roles, *roles_of(by, chosen)]):
        raise _unauthorised(found, by)
    if from_text and isinstance(value, str):
        value = value_of_text(found, value)
    tree = encode(_value(found, value, result, by, at), TYPES)
    _refuse_secrets(journal, {"value": tree, "by": by}, f"the answer to question {found.ask}")
    mail = Mail("answer", found.ask, value=tree, who=by, at=at, via=via)
    try:
        chosen.post(run, mail)
    except MailTaken as taken:
        raise _reused(found, taken.existing) from None
    return mail


def send_signal(
    run: str,
    name: str,
    value: object = None,
    *,
    by: str | None = None,
    key: str | None = None,
    store: StoreLike = None,
    via: str = "api",
) -> Mail:
    """Send a named message to a run: the oldest of its name is taken by the next ``signal(name)`` in it, which may not
    have come there yet. It is kept durably when this returns.

    ``key``: an id of the message: one that was sent before is not sent again (``MailTaken``), so that a sender can try
    again after a failure. ``StaleAnswer`` where the run has ended.
    """
    _check_name("by", by)
    if not isinstance(cast("object", name), str) or not name:
        raise ValueError("a signal has a name")
    chosen, run, journal = _opened(run, store, "send_signal")
    asked = asks_of(journal)
    if asked.ended is not None:
        raise StaleAnswer(
            f"run {run} has ended ({asked.ended} on {_when(asked.ended_at)}) and takes no signal {name!r}",
            hint=f"agentloom show {run[-4:]}",
            run=run,
            open=[],
        )
    tree = encode(value, TYPES)
    _refuse_secrets(journal, {"name": name, "value": tree, "by": by}, f"signal {name!r}")
    # The id stands in the trace for ever: of a key that somebody chose only the digest.
    chosen_id = os.urandom(16).hex() if key is None else sha256(f"{run}\n{key}".encode()).hexdigest()[:32]
    mail = Mail("signal", chosen_id, name, tree, by, time.time_ns(), via)
    chosen.post(run, mail)
    return mail


def inbox(store: StoreLike = None, *, answered: bool = False) -> list[OpenAsk]:
    """What the runs of a store wait for somebody to say, oldest first: questions and messages. ``answered``: also those
    that were answered, whose runs were not resumed since."""
    chosen = open_store(store)
    found: list[OpenAsk] = []
    for row in chosen.runs():
        if not row.asks:
            continue
        try:
            found += waiting(chosen, row.run)
        except RunNotFound:
            continue  # it was removed meanwhile
        except (TraceError, StoreFailed) as error:
            _log.warning("run %s cannot be read, and what it waits for is left out: %s", row.run, error)
    kept = [one for one in found if one.kind != "time" and (answered or one.answered is None)]
    return sorted(kept, key=lambda one: (one.asked_at, one.run, one.number or 0))


def waiting(store: Store, run: str) -> list[OpenAsk]:
    """What a run waits for, times too, each with the mail that answers it."""
    data = store.read(run)
    if not data:
        return []  # it has not begun
    return _with_mail(asks_of(Journal.parse(data)), store, run)


def _with_mail(asked: Asked, store: Store, run: str) -> list[OpenAsk]:
    return with_mail(asked, store.mail(run)) if asked.open else []


# -- finding the question --------------------------------------------------------------------------------------------


def _opened(run: str, store: StoreLike, what: str) -> tuple[Store, str, Journal]:
    scope = current()
    if scope is not None:
        raise NotSupported(
            f"{what}() was called in the code of a run of {scope.session.agent}",
            hint="put it into a tool: what a run does to the world is recorded",
        )
    chosen = open_store(store)
    run = chosen.resolve(run)
    return chosen, run, Journal.parse(chosen.read(run))


def _the_one(store: Store, asked: Asked, ask: str | None) -> OpenAsk:
    """The open question that is meant. Raises what ``answer`` raises where there is none."""
    everything = _with_mail(asked, store, asked.run)
    questions = [one for one in everything if one.kind == "answer"]
    free = [one for one in questions if one.answered is None]
    if ask is not None:
        found = next((one for one in questions if one.ask == ask), None)
        if found is None:
            raise _not_open(asked, ask, free)
        if found.answered is not None:
            raise _reused(found, found.answered)
    elif len(free) == 1:
        found = free[0]
    elif free:
        raise AmbiguousAsk(
            f"run {asked.run} waits for {len(free)} answers: {_listed(free)}",
            hint="say which one is answered: ask=ID, or --ask ID",
            run=asked.run,
            open=free,
        )
    elif questions:
        raise _reused(questions[-1], questions[-1].answered)
    else:
        raise _nothing_open(asked, everything)
    if found.erased:
        raise StaleAnswer(
            f"question {found.ask} of run {asked.run} was erased: nobody can know what an answer would mean",
            run=asked.run, ask=found.ask, open=free,
        )  # fmt: skip
    return found


def _nothing_open(asked: Asked, everything: list[OpenAsk]) -> UnknownAsk | StaleAnswer | ReusedAnswer:
    run = asked.run
    if asked.ended is not None:
        return StaleAnswer(
            f"run {run} has ended ({asked.ended} on {_when(asked.ended_at)}) and asks nothing",
            hint=f"agentloom show {run[-4:]}", run=run, open=[],
        )  # fmt: skip
    waits = f"; it waits for {_listed(everything)}" if everything else ""
    return UnknownAsk(
        f"run {run} asks nothing{waits}",
        hint="send a signal with send_signal(), or `agentloom signal RUN NAME`"
        if any(one.kind == "signal" for one in everything)
        else f"agentloom resume {run[-4:]}",
        run=run,
        open=[],
    )


def _not_open(
    asked: Asked, ask: str, free: list[OpenAsk]
) -> UnknownAsk | StaleAnswer | ReusedAnswer | LateAnswer:
    run = asked.run
    about: dict[str, Any] = {"run": run, "ask": ask, "open": free}
    how, who, at = asked.closed.get(ask, ("", None, 0))
    if how == "answered":
        by = f" by {who}" if who else ""
        return ReusedAnswer(
            f"question {ask} of run {run} was answered{by} on {_when(at)}, and the run went on",
            hint=f"agentloom show {run[-4:]}", existing=None, **about,
        )  # fmt: skip
    if how == "expired":
        return LateAnswer(
            f"question {ask} of run {run} was open until {_when(at)}; the run went on without an answer",
            hint=f"agentloom show {run[-4:]}", **about,
        )  # fmt: skip
    if asked.ended is not None:
        return StaleAnswer(
            f"run {run} has ended ({asked.ended} on {_when(asked.ended_at)}) and asks nothing",
            hint=f"agentloom show {run[-4:]}", **about,
        )  # fmt: skip
    if how:
        why = "was taken back" if how == "retracted" else "is asked no longer"
        return StaleAnswer(
            f"question {ask} of run {run} {why}, on {_when(at)}",
            hint=f"open now: {_listed(free)}" if free else f"agentloom show {run[-4:]}", **about,
        )  # fmt: skip
    return UnknownAsk(
        f"run {run} has no question {ask!r}",
        hint=f"open: {_listed(free)}" if free else "it asks nothing now", **about,
    )  # fmt: skip


# -- checking the answer ---------------------------------------------------------------------------------------------


def _value(ask: OpenAsk, value: object, result: object, by: str | None, at: int) -> object:
    """What is posted for ``value``. ``InvalidAnswer``."""
    if ask.in_doubt:
        return _happened(ask, value, result)
    if result is not _NO_RESULT:
        raise _invalid(ask, [{"where": "", "what": "only a call in doubt has a result"}], "leave result= out")
    if ask.approval is not None:
        return _granted(ask, value, by, at)
    value = as_json(value) if ask.schema is not None else value
    plain = decode(encode(value, TYPES), None)
    problems = problems_of(plain, choices=ask.choices, schema=ask.schema)
    if problems:
        raise _invalid(ask, problems, "answer again")
    return value


def _happened(ask: OpenAsk, value: object, result: object) -> dict[str, object]:
    given = members(value)
    happened = given.get("happened") if given else yes_or_no(value)
    if result is not _NO_RESULT:
        given["result"] = result
    if not isinstance(happened, bool) or set(given) - {"happened", "result"}:
        problem = "did the call happen? It is neither yes nor no"
        raise _invalid(ask, [{"where": "", "what": problem}], "answer yes with result=, or no")
    if happened and "result" not in given:
        problem = "it happened, but what it gave is not said, and the run goes on with that"
        raise _invalid(
            ask, [{"where": "result", "what": problem}], "result=..., or --result JSON (null for nothing)"
        )
    if not happened and "result" in given:
        problem = "what did not happen has no result; the call is made now"
        raise _invalid(ask, [{"where": "result", "what": problem}], "leave result= out")
    return {"happened": True, "result": given["result"]} if happened else {"happened": False}


def _granted(ask: OpenAsk, value: object, by: str | None, at: int) -> dict[str, object]:
    given = members(value)
    granted = given.get("granted") if given else yes_or_no(value)
    reason = given.get("reason")
    fits = (
        isinstance(granted, bool)
        and not set(given) - {"granted", "reason"}
        and isinstance(reason, str | None)
    )
    if not fits:
        problem = 'an approval is yes or no, or {"granted": true or false, "reason": text}'
        raise _invalid(ask, [{"where": "", "what": problem}], "answer yes or no")
    return {"granted": granted, "by": by, "at": at, **({} if reason is None else {"reason": reason})}


def _check_name(what: str, name: object) -> None:
    """``ValueError`` for a name that could not be shown as one in a line."""
    if name is not None and not (
        isinstance(name, str) and 0 < len(name) <= _MOST_NAME and name.isprintable()
    ):
        raise ValueError(f"{what}= is a name: a text of 1 to {_MOST_NAME} characters that can be printed")


def _refuse_secrets(journal: Journal, said: dict[str, Tree], what: str) -> None:
    """``ValueRefused`` where mail holds a secret: it lies on the disk until the run takes it, and the run would get a
    placeholder."""
    blob = journal.entries[0].get("policy")
    policy = decode(journal.tree(blob), None) if isinstance(blob, str) and journal.has(blob) else None
    redactor = Redactor(rules_of_record(policy))
    found: list[tuple[tuple[object, ...], str]] = []
    redactor.tell(lambda path, known: found.append((path, known.kind)))
    if redactor.tree(said) != said:
        path, kind = found[0] if found else ((), "a secret")
        raise ValueRefused(
            ".".join(map(str, path)) or "value",
            "str",
            f"{what} holds a secret ({kind}), and mail is kept on the disk until the run takes it",
            hint="put it where the run's tools read their credentials, and answer with its name",
        )


# -- words -----------------------------------------------------------------------------------------------------------


def _late(ask: OpenAsk) -> LateAnswer:
    return LateAnswer(
        f"question {ask.ask} of run {ask.run} was open until {_when(ask.due)}",
        hint=f"agentloom resume {ask.run[-4:]}: it goes on without an answer",
        run=ask.run, ask=ask.ask, open=[],
    )  # fmt: skip


def _reused(ask: OpenAsk, existing: Mail | None) -> ReusedAnswer:
    by = "" if existing is None else said(existing)
    return ReusedAnswer(
        f"question {ask.ask} of run {ask.run} was answered before{by}; that answer stands",
        hint=f"agentloom resume {ask.run[-4:]}",
        run=ask.run, ask=ask.ask, existing=existing, open=[],
    )  # fmt: skip


def _unauthorised(ask: OpenAsk, by: str | None) -> UnauthorisedAnswer:
    whom = " or ".join(ask.approver)
    who = f"{by} is none of them" if by is not None else "who answers was not said"
    return UnauthorisedAnswer(
        f"question {ask.ask} of run {ask.run} is for {whom}; {who}",
        hint="by=NAME, or --by NAME; roles stand in people.toml of the store, or where AGENTLOOM_PEOPLE says",
        run=ask.run, ask=ask.ask, by=by, approver=list(ask.approver), open=[ask],
    )  # fmt: skip


def _invalid(ask: OpenAsk, problems: list[dict[str, str]], hint: str) -> InvalidAnswer:
    lines: list[str] = []
    for problem in problems:
        where = f"{problem['where']}: " if problem["where"] else ""
        got = f"; it is {problem['got']}" if "got" in problem else ""
        lines.append(f"{where}{problem['what']}{got}")
    return InvalidAnswer(
        f"the answer to question {ask.ask} of run {ask.run} is none that was asked for: " + "; ".join(lines),
        hint=hint, run=ask.run, ask=ask.ask, problems=problems, open=[ask],
    )  # fmt: skip


def _listed(asks: list[OpenAsk]) -> str:
    return "; ".join(str(one) for one in asks[:_MOST]) + ("; ..." if len(asks) > _MOST else "")


_MOST = 8


def _when(at: int | None) -> str:
    return moment(at) if at else "?"
