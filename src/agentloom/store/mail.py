"""Mail: what was said to a run from outside, kept beside its trace until the run takes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from agentloom.errors import FormatError, MailTaken, StoreError, ValueRefused
from agentloom.format.canonical import dump, load
from agentloom.format.values import Tree
from agentloom.format.words import moment

__all__ = ["Mail", "checked_mail", "read_mail", "said", "taken", "written_mail"]

_KINDS = ("answer", "signal", "cancel")
_VERSION = 1
_MOST_BYTES = 16 << 20
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,63}\Z")
"""The key of a signal stands in an entry of the trace: no text of users, and not the length of a payload's id."""


@dataclass(frozen=True, slots=True)
class Mail:
    """``key``: of an answer the question; of a cancellation ``cancel``; of a signal an id of its own. Mail of one kind
    and key is posted once, for ever. ``name``: of a signal. ``value``: an encoded value. ``who`` said it, ``at`` when
    (nanoseconds since 1970), ``via`` what (``cli``, ``api``, ``terminal``)."""

    kind: Literal["answer", "signal", "cancel"]
    key: str
    name: str = ""
    value: Tree = None
    who: str | None = None
    at: int = 0
    via: str = ""


def checked_mail(mail: Mail) -> bytes:
    """The bytes of ``mail``, as they are kept. ``StoreError`` for what is no mail, ``ValueRefused`` for a value that is
    no tree."""
    if mail.kind not in _KINDS:
        raise StoreError(f"mail is of kind {', '.join(_KINDS)}, not {mail.kind!r}", kind=mail.kind)
    if not _KEY.match(mail.key):
        raise StoreError("the key of mail is 1 to 63 characters of A-Za-z0-9_.-", key=mail.key)
    if not 0 <= mail.at < 2**63:
        raise StoreError(f"mail has a time in nanoseconds since 1970, not {mail.at}", at=mail.at)
    return written_mail(mail)


def written_mail(mail: Mail) -> bytes:
    """One line of JSON."""
    facts: dict[str, Tree] = {
        "mail": _VERSION,
        "kind": mail.kind,
        "key": mail.key,
        "name": mail.name,
        "value": mail.value,
        "who": mail.who,
        "at": mail.at,
        "via": mail.via,
    }
    data = dump(facts) + b"\n"
    if len(data) > _MOST_BYTES:
        raise ValueRefused(
            "value",
            type(mail.value).__name__,
            f"mail of {len(data):,} bytes; at most {_MOST_BYTES:,}",
            hint="put it where the run can read it, and send its address",
        )
    return data


def read_mail(data: bytes, where: str) -> Mail:
    """The mail that ``written_mail`` wrote. ``FormatError`` naming ``where`` for anything else."""
    try:
        raw = load(data.removesuffix(b"\n"))
    except FormatError as error:
        raise _damaged(where, error.message) from error
    facts: dict[str, Any] = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    if facts.get("mail") != _VERSION:
        raise _damaged(where, f"it is no mail of version {_VERSION}")
    kind, key, name, who = (facts.get(field) for field in ("kind", "key", "name", "who"))
    at, via = facts.get("at"), facts.get("via")
    texts = all(isinstance(text, str) for text in (key, name, via))
    if kind not in _KINDS or not texts or type(at) is not int or not isinstance(who, str | None):
        raise _damaged(where, "a field is missing or of another type")
    return Mail(cast(Any, kind), str(key), str(name), facts.get("value"), who, at, str(via))


def taken(run: str, existing: Mail) -> MailTaken:
    """The error for mail of a kind and key that was posted before."""
    what = {
        "answer": f"question {existing.key} of run {run} was answered",
        "signal": f"signal {existing.name!r} ({existing.key}) was sent to run {run}",
        "cancel": f"run {run} was asked to stop",
    }[existing.kind]
    return MailTaken(
        f"{what} before{said(existing)}",
        hint="the first one stands; nothing was changed",
        run=run,
        existing=existing,
    )


def said(mail: Mail) -> str:
    """Who said it when: `` by ann on 2026-11-29 07:03:11 UTC``."""
    who = f" by {mail.who}" if mail.who else ""
    if not mail.at:
        return who
    return f"{who} on {moment(mail.at)}"


def _damaged(where: str, why: str) -> FormatError:
    return FormatError(
        "mail.damaged",
        f"{where} is damaged: {why}",
        hint="restore it from a copy, or delete it and say it again",
    )
