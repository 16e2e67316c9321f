"""Questions that runs ask, as people read them: what may be answered, until when, and the command lines."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from agentloom.cli.render import Span, duration, shorten
from agentloom.cli.runs import short

if TYPE_CHECKING:
    from agentloom.runtime.asks import OpenAsk

__all__ = ["ask_lines", "commands", "moment", "span", "suspended_lines", "wait_words"]

_MOST_ASKS = 5
_MOST_CHOICES = 4
_LABEL = 10
_DAY = 86_400 * 10**9


def moment(at: int, now: int) -> str:
    """A time and how far it is: ``2026-11-29 09:00 (in 14 h 5 min)``. Both in nanoseconds since 1970, shown local."""
    text = datetime.fromtimestamp(at / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    far = span(abs(at - now))
    return f"{text} (in {far})" if at > now else f"{text} ({far} ago)"


def span(nanoseconds: int) -> str:
    """A time span from seconds to days: ``5.1 s``, ``3 h 20 min``, ``2 d 4 h``."""
    minutes = nanoseconds // (60 * 10**9)
    if nanoseconds < 2 * 3600 * 10**9:
        return duration(nanoseconds)
    if nanoseconds < 2 * _DAY:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def suspended_lines(asks: Sequence[OpenAsk], width: int, *, now: int | None = None) -> list[list[Span]]:
    """What a suspended run waits for, each with the command lines that give it; what goes on then."""
    now = time.time_ns() if now is None else now
    lines: list[list[Span]] = []
    free = sum(one.kind == "answer" and one.answered is None for one in asks)
    for ask in asks[:_MOST_ASKS]:
        lines += ask_lines(ask, width, several=free > 1, now=now)
    if len(asks) > _MOST_ASKS:
        lines.append([("dim", f"   and {len(asks) - _MOST_ASKS} more: agentloom inbox")])
    if asks:
        lines.append(_labelled("then", f"agentloom resume {short(asks[0].run)}, or `agentloom work` does it"))
    return lines


def ask_lines(ask: OpenAsk, width: int, *, several: bool, now: int, answers: bool = True) -> list[list[Span]]:
    """One thing that a run waits for. ``several``: more than one question is open, so that an answer names it;
    ``answers``: with the command lines."""
    room = max(40, width - _LABEL - 3)
    label, text = wait_words(ask)
    lines = [_labelled(label, shorten(text, 4 * room), "strong")]
    if ask.approval is not None:
        call = f"{ask.approval.get('tool')}({_members(ask.approval.get('args'))})"
        lines.append(_labelled("call", shorten(call, 2 * room)))
    if ask.in_doubt and ask.request is not None:
        lines.append(_labelled("call", shorten(_json(ask.request), 2 * room)))
    if ask.evidence is not None:
        lines.append(_labelled("evidence", shorten(_json(ask.evidence), 3 * room)))
    if ask.choices is not None and not ask.in_doubt:
        lines.append(_labelled("choices", shorten(", ".join(map(_plain, ask.choices)), room)))
    elif ask.schema is not None:
        lines.append(_labelled("as", shorten(_json(dict(ask.schema)), room)))
    if ask.approver:
        lines.append(_labelled("who", f"only {' or '.join(ask.approver)}"))
    if ask.due is not None:
        lines.append(_labelled("due", moment(ask.due, now) + _afterwards(ask)))
    if ask.answered is not None:
        by = f" by {ask.answered.who}" if ask.answered.who else ""
        lines.append(_labelled("answered", f"{moment(ask.answered.at, now)}{by}, not resumed yet"))
    elif answers:
        lines += [
            _labelled("answer" if number == 0 else "", line)
            for number, line in enumerate(commands(ask, several=several))
        ]
    return lines


def wait_words(ask: OpenAsk) -> tuple[str, str]:
    """What kind of wait it is, and what for."""
    if ask.kind == "signal":
        return "signal", f"{ask.ask}  {ask.name}" + (f": {ask.question}" if ask.question else "")
    if ask.kind == "time":
        return "time", f"{ask.ask}  goes on by itself" if not ask.question else f"{ask.ask}  {ask.question}"
    if ask.approval is not None:
        return "approve", f"{ask.ask}  {ask.question or ask.approval.get('tool')}"
    return "in doubt" if ask.in_doubt else "question", f"{ask.ask}  {ask.question}"


def commands(ask: OpenAsk, *, several: bool) -> list[str]:
    """The command lines that give a run what it waits for; none for a time. ``several``: as in `ask_lines`."""
    run = short(ask.run)
    if ask.kind == "signal":
        return [f"agentloom signal {run} {shlex.quote(ask.name)} [VALUE]"]
    if ask.kind == "time" or ask.erased:
        return []
    which = f" --ask {shlex.quote(ask.ask)}" if several else ""
    which += " --by NAME" if ask.approver else ""
    start = f"agentloom answer {run}"
    if ask.in_doubt:
        return [
            f"{start} no{which}             it did not happen: it is done now",
            f"{start} yes --result JSON{which}  it did, and gave that (null: nothing)",
        ]
    if ask.approval is not None:
        return [f"{start} yes{which}", f"{start} no{which}"]
    if ask.choices is not None and len(ask.choices) <= _MOST_CHOICES:
        return [f"{start} {_word(one)}{which}" for one in ask.choices]
    return [f"{start} VALUE{which}"]


def _word(choice: object) -> str:
    word = shlex.quote(_plain(choice))
    return f"-- {word}" if word.startswith("-") else word


def _afterwards(ask: OpenAsk) -> str:
    if ask.kind == "time":
        return ""
    if ask.approval is not None:
        return ", then it is denied"
    return f", then {_json(ask.default)}" if ask.has_default else ", then it fails with Expired"


def _members(value: object) -> str:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return ", ".join(f"{name}={_json(one)}" for name, one in members.items())
    return "" if value is None else _json(value)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def _labelled(label: str, text: str, style: str = "") -> list[Span]:
    return ["   ", ("label", label.ljust(_LABEL)), (style, text) if style else text]
