"""Calls for people: which call a word means, and a call in one line."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from agentloom.cli.render import Span, duration
from agentloom.errors import PayloadMissing, TargetError
from agentloom.format.callids import unescape
from agentloom.replay.answered import answer_of
from agentloom.replay.summaries import documents_words, unprinted
from agentloom.replay.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentloom.format.values import Tree
    from agentloom.replay.recording import RecordedCall, Recording

__all__ = [
    "RUN_PARTS",
    "call_json",
    "call_lines",
    "find_call",
    "or_missing",
    "result_text",
    "split_address",
    "tokens",
]

RUN_PARTS = ("input", "output", "env", "code", "policy", "tags", "conversation")
"""Payloads of the run itself, addressed like a call: ``show last output``."""


def split_address(address: str) -> tuple[str, str | None]:
    """``3:messages[0].content`` into call and field; a call id holds no colon, a field may."""
    call, colon, field = address.partition(":")
    return call, field if colon else None


def find_call(recording: Recording, word: str) -> RecordedCall:
    """The call that ``word`` means: its number from 1, its id, or the end of its id that fits no other.

    Raises ``TargetError`` that names what is near.
    """
    calls = recording.calls
    if word.isdecimal():
        number = int(word)
        if recording.total is not None and calls and calls[0].index == number:
            return calls[0]
        if 1 <= number <= len(calls):
            return calls[number - 1]
        raise TargetError(
            f"no call {number}: the run has {f'{recording.count:,}' if calls else 'none'}",
            hint=f"give 1 to {recording.count}" if calls else "agentloom show RUN says how it ended",
            call=word,
            calls=recording.count,
        )
    if word in recording.by_id:
        return recording.by_id[word]
    ends = [call for call in calls if call.id.endswith("/" + word)]
    if len(ends) == 1:
        return ends[0]
    if ends:
        found = ", ".join(call.id for call in ends[:5])
        raise TargetError(
            f"{word!r} is the end of {len(ends)} call ids: {found}", hint="give the whole id", call=word
        )
    near = difflib.get_close_matches(word, [call.id for call in calls[:5000]], n=3, cutoff=0.5)
    raise TargetError(
        f"no call {word!r} in this run",
        hint=f"did you mean {', '.join(near)}?"
        if near
        else "give a number or an id that `agentloom show RUN` lists",
        call=word,
        nearest=near,
    )


def tokens(usage: dict[str, Tree] | None) -> str:
    """``612+18 tok`` (input and output), ``?`` for what the provider did not say; empty without usage."""
    if not usage:
        return ""
    given = [str(usage[name]) if name in usage else "?" for name in ("input", "output")]
    return "" if given == ["?", "?"] else "+".join(given) + " tok"


def result_text(recording: Recording, call: RecordedCall, width: int) -> str:
    """What came of a call, in one line: its tool calls, its text, its value, its error, or why there is none."""
    if call.status is None:
        if call.ask is not None and not recording.closed:
            return "waits: the run is suspended here"
        ended = (
            "it was under way when the run ended" if recording.closed else "the process ended in this call"
        )
        return f"no outcome: {ended}"
    if call.status in ("cancelled", "closed"):
        return "cancelled" if call.status == "cancelled" else "left early"
    try:
        tree = recording.outcome(call)
    except PayloadMissing:
        return "(not in the trace)"
    answer = None
    if call.type == "model":
        answer = answer_of(tree, recording.chunks_of(call) if call.chunks else ())
    found = documents_words(tree, width) if call.type == "retrieve" else None
    if found is not None:
        return found
    text = show(unprinted(tree), width) if answer is None else answer.words(width)
    return f"{text} ({call.chunks} chunks)" if call.chunks else text


def call_lines(recording: Recording, calls: Sequence[RecordedCall], width: int) -> list[list[Span]]:
    """One line for each call: number, type, name, what came of it, tokens or time, place."""
    if not calls:
        return []
    files = {_file(call.src) for call in recording.calls}
    number = len(str(calls[-1].index))
    kind = max(len(call.type) for call in calls)
    name = min(24, max(len(call.name) for call in calls))
    costs = [tokens(call.usage) or (duration(call.dur) if call.dur is not None else "") for call in calls]
    places = [f"{_place(call.src, several=len(files) > 1)}{_asker(call.id)}" for call in calls]
    room = max(24, width - number - kind - name - max(map(len, costs)) - max(map(len, places)) - 14)
    texts: list[tuple[str, str]] = []
    for call in calls:
        mark = "WRITE " if call.effect == "write" else ""
        texts.append((mark, result_text(recording, call, room - len(mark))))
    used = max(len(mark) + len(text) for mark, text in texts)
    lines: list[list[Span]] = []
    for call, (mark, text), cost, place in zip(calls, texts, costs, places, strict=True):
        style = "bad" if call.status == "error" else "warn" if call.status != "ok" else ""
        lines.append(
            [
                ("dim", f"{call.index:>{number + 1}} "),
                f"{call.type.ljust(kind)}  ",
                ("name", f"{call.name[:name].ljust(name)}  "),
                ("warn", mark),
                (style, f"-> {text}".ljust(used + 3 - len(mark))),
                ("dim", f"  {cost:>{max(map(len, costs))}}  {place}"),
            ]
        )
    return lines


_NAMELESS = frozenset(("task", "thread", "parallel", "run_sync", "retry"))


def _asker(call: str) -> str:
    """`` in NODE``: the innermost part of the run with a name that a call was made in (a node, an agent, a step)."""
    below = [part.partition("[")[0] for part in call.rpartition("#")[0].split("/")[2:]]
    named = [part for part in below if part not in _NAMELESS]
    return f" in {unescape(named[-1])}" if named else ""


def _place(src: str, *, several: bool) -> str:
    """``:9``, or ``tools.py:9`` where the calls of the run are in ``several`` files."""
    place = src.split(" ", maxsplit=1)[0]
    return "" if "?" in src else place if several else ":" + place.rpartition(":")[2]


def call_json(recording: Recording, call: RecordedCall, *, payloads: bool = False) -> dict[str, object]:
    """A call as ``--json`` shows it; with ``payloads`` also request, outcome and chunks as tagged trees."""
    facts: dict[str, object] = {
        "call": call.index,
        "id": call.id,
        "kind": call.type,
        "name": call.name,
        "status": call.status,
        "effect": call.effect,
        "src": call.src,
        "parent": call.parent,
        "attempt": call.attempt,
        "key": call.key,
        "profile": call.profile,
        "rule": _rule(recording, call),
        "usage": call.usage,
        "chunks": call.chunks,
        "vt_ns": call.vt,
        "duration_ns": call.dur,
    }
    if payloads:
        facts["request"] = or_missing(lambda: recording.request(call))
        facts["outcome"] = or_missing(lambda: recording.outcome(call))
        facts["chunk_values"] = or_missing(lambda: list(recording.chunks_of(call)))
    return facts


def _rule(recording: Recording, call: RecordedCall) -> object:
    """What was changed of the call's profile, as the trace keeps it; None where nothing was."""
    rule = call.rule
    if rule is None:
        return None
    return or_missing(lambda: recording.tree(rule, f"the rule of profile {call.profile}", call))


def or_missing(read: Callable[[], object]) -> object:
    """What ``read`` gives, or ``{"missing": why}`` where the payload was erased or lost."""
    try:
        return read()
    except PayloadMissing as error:
        return {"missing": error.message}


def _file(src: str) -> str:
    return src.split(" ", maxsplit=1)[0].rpartition(":")[0]
