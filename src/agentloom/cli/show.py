"""``agentloom show RUN [CALL[:FIELD]]``: read a run, a call, a field."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, cast

import click

from agentloom.cli.asking import commands, moment, wait_words
from agentloom.cli.calls import RUN_PARTS, call_json, call_lines, find_call, or_missing, split_address, tokens
from agentloom.cli.exits import Exit, report
from agentloom.cli.fieldpath import pick
from agentloom.cli.options import Settings, common
from agentloom.cli.render import Screen, Span, duration, shorten
from agentloom.cli.runs import RUN, Found, find, large, named, naming, short
from agentloom.cli.states import state_json, state_lines, states_of
from agentloom.errors import PayloadMissing, TargetError
from agentloom.replay.answered import answer_of
from agentloom.replay.glance import glance
from agentloom.replay.recording import RecordedCall, Recording, Step
from agentloom.replay.summaries import error_words
from agentloom.replay.text import show as brief
from agentloom.runtime.asks import open_asks
from agentloom.runtime.redaction_secrets import secrets_line

if TYPE_CHECKING:
    from agentloom.format.values import Tree

__all__ = ["command"]

LIMIT = 1200
"""Characters of the short form of a run, whatever its size (all calls with ``--all``)."""

_FIRST = 8  # calls that the short form begins with, when not all fit


@click.command(short_help="Read a run, a call or a field.")
@click.argument("run", type=RUN)
@click.argument("call", required=False)
@click.option("--all", "everything", is_flag=True, help="Every call, and whole requests and outcomes.")
@common
def command(settings: Settings, run: str, call: str | None, *, everything: bool) -> int:
    """Read RUN: its calls in order; or one CALL of it, by number or id; or a field, as CALL:FIELD.

    \b
    agentloom show last
    agentloom show last 3
    agentloom show last 3:messages[0].content
    agentloom show last output        also: input env code policy tags conversation
    """
    screen = settings.screen()
    everything = everything or bool(settings.verbosity)
    whole = call is None and (everything or settings.json)
    if not whole and _glanced(settings, screen, run, call, everything=everything):
        return Exit.OK
    found = find(settings, run)
    journal = found.journal(strict=False)
    recording = Recording.from_journal(journal)
    if call is None:
        _run(screen, recording, found, everything=everything)
    else:
        _part(screen, recording, call, everything=everything)
    if journal.fault is not None:
        report(named(journal.fault.error(), found.full_name), screen)
        return Exit.INTEGRITY
    return Exit.OK


def _glanced(settings: Settings, screen: Screen, run: str, address: str | None, *, everything: bool) -> bool:
    """Show parts of a large trace without reading the rest; False where that cannot be done."""
    word = None if address is None else split_address(address)[0]
    with large(settings, run) as opened:
        if opened is None:
            return False
        source, found = opened
        with naming(found.full_name):
            recording = glance(source.span, source.size, None if word in RUN_PARTS else word)
        if recording is None:
            return False
        if address is None:
            screen.lines([_header(recording), *_fitting(recording, screen.width)])
        else:
            _part(screen, recording, address, everything=everything)
    screen.note(
        ("dim", "partial view: "),
        f"{len(recording.calls):,} of {recording.count:,} calls were read; `agentloom verify` checks the whole file",
    )
    return True


def _part(screen: Screen, recording: Recording, address: str, *, everything: bool) -> None:
    """A call, a field, or one of the run's own payloads."""
    word, field = split_address(address)
    if word in RUN_PARTS:
        tree = recording.output() if word == "output" else recording.payload(word)
        _value(screen, pick(tree, field or ""))
        return
    one = find_call(recording, word)
    if field is not None:
        _value(screen, _field(recording, one, field))
    elif screen.json:
        screen.data(call_json(recording, one, payloads=True))
    else:
        _call(screen, recording, one, everything=everything)


def _field(recording: Recording, call: RecordedCall, field: str) -> Tree:
    """A field of the call: of its ``request`` or ``outcome`` where it begins so, else of whichever has it."""
    side = re.match(r"(request|outcome)(?=[.\[]|$)", field)
    if side is not None:
        tree = recording.request(call) if side[1] == "request" else recording.outcome(call)
        return pick(tree, field[side.end() :])
    try:
        return pick(recording.request(call), field)
    except TargetError:
        if call.value is None:
            raise
        try:
            return pick(recording.outcome(call), field)
        except TargetError as missing:
            raise TargetError(
                f"call {call.index} has no field {field!r}, neither in its request nor in its outcome",
                hint=f"see its fields: agentloom show RUN {call.index}",
                field=field,
                call=call.id,
            ) from missing


def _value(screen: Screen, tree: Tree) -> None:
    """A value whole: a text as it is, everything else as JSON."""
    if screen.json or not isinstance(tree, str):
        screen.data(tree)
    else:
        for line in tree.split("\n"):
            screen.line(line)


def _run(screen: Screen, recording: Recording, found: Found, *, everything: bool) -> None:
    if screen.json:
        screen.data(_run_json(recording, found))
        return
    lines = [_header(recording)]
    if everything:
        lines += _every_line(recording, screen.width) + _tail(recording)
    else:
        lines += _fitting(recording, screen.width)
    screen.lines(lines)
    if recording.journal.torn:
        screen.note(
            ("warn", "torn: "),
            f"{recording.journal.torn:,} bytes of an unfinished last line are left out (a crash)",
        )


def _fitting(recording: Recording, width: int) -> list[list[Span]]:
    """The calls and the tail in at most ``LIMIT`` characters: the first and the last calls where not all fit."""
    width, tail = min(width, 100), _tail(recording)
    room = LIMIT - _length([_header(recording)]) - _length(tail) - 80
    events = _events(recording)
    if len(events) <= 2 * _FIRST + 8:
        lines = _lines_of(recording, events, width)
        if _length(lines) <= room:
            return lines + tail
    for first in range(_FIRST, 0, -1):
        last = max(1, first // 2)
        if first + last >= len(events):
            continue
        lines = _lines_of(recording, [*events[:first], *events[-last:]], width)
        if _length(lines) <= room or first == 1:
            return [
                *lines[:first],
                [("dim", _left_out(recording, events[first:-last]))],
                *lines[first:],
                *tail,
            ]
    return _lines_of(recording, events, width) + tail


_Event = RecordedCall | Step


def _events(recording: Recording) -> list[_Event]:
    """The calls, and between them the deterministic results of a workflow, in the order of the trace."""
    states = states_of(recording)
    if not states:
        return list(recording.calls)
    return sorted([*recording.calls, *states], key=lambda event: event.seq)


def _left_out(recording: Recording, events: list[_Event]) -> str:
    """What a view does not show: calls, failed ones among them, and deterministic results."""
    calls = [event for event in events if isinstance(event, RecordedCall)]
    results = len(events) - len(calls)
    count = len(calls) if recording.total is None else recording.count - len(recording.calls) + len(calls)
    errors = sum(call.status == "error" for call in calls)
    text = f"{_plural(count, 'call')} more" if count else ""
    if errors and recording.total is None:
        text += f", {errors:,} of them {'an error' if errors == 1 else 'errors'}"
    if results:
        text += (
            f"{', and ' if text else ''}{_plural(results, 'deterministic result')}{'' if text else ' more'}"
        )
    return f"    ... {text}: --all"


def _every_line(recording: Recording, width: int) -> list[list[Span]]:
    """A line for each call, and between them one for each deterministic result, in the order of the trace."""
    return _lines_of(recording, _events(recording), width)


def _lines_of(recording: Recording, events: list[_Event], width: int) -> list[list[Span]]:
    calls = [event for event in events if isinstance(event, RecordedCall)]
    states = [event for event in events if isinstance(event, Step)]
    lines = list(zip((call.seq for call in calls), call_lines(recording, calls, width), strict=True))
    if states:
        lines = sorted([*lines, *state_lines(recording, states, width)], key=lambda line: line[0])
    return [spans for _, spans in lines]


def _length(lines: list[list[Span]]) -> int:
    return sum(sum(len(s) if isinstance(s, str) else len(s[1]) for s in spans) + 1 for spans in lines)


def _header(recording: Recording) -> list[Span]:
    status = {None: "no end", "completed": "ok"}.get(recording.status, recording.status or "")
    if recording.status is None and recording.open_asks():
        status = "suspended"
    facts = [_plural(recording.count, "call")]
    span = _span(recording)
    if span is not None:
        facts.append(duration(span))
    used = [call.usage for call in recording.calls if call.usage]
    if used and recording.total is None:
        total = {side: sum(cast(int, usage.get(side, 0)) for usage in used) for side in ("input", "output")}
        facts.append(tokens(cast("dict[str, Tree]", total)))
    if _guard(recording) == "off":
        facts.append("guard off")
    if secrets := recording.secrets():
        facts.append(secrets_line(secrets.values()))
    return [
        ("name", short(recording.run)),
        f"  {recording.agent}{_input(recording)}  ",
        ("good" if status == "ok" else "bad", status),
        ("dim", "  " + "  ".join(facts)),
    ]


def _guard(recording: Recording) -> str | None:
    """The policy of the run's guard; None where it was erased."""
    try:
        return recording.guard
    except PayloadMissing:
        return None


def _input(recording: Recording) -> str:
    """The input as the call of the agent would read: ``("refund order 812")``."""
    try:
        tree = recording.payload("input")
    except PayloadMissing:
        return "(input not in the trace)"
    if isinstance(tree, dict) and set(tree) == {"args", "kwargs"}:
        args, kwargs = tree["args"], tree["kwargs"]
        parts = [brief(item, 40) for item in args] if isinstance(args, list) else []
        parts += (
            [f"{key}={brief(item, 30)}" for key, item in kwargs.items()] if isinstance(kwargs, dict) else []
        )
        return f"({', '.join(parts[:4])}{', ...' if len(parts) > 4 else ''})"
    return f" {brief(tree, 60)}"


def _span(recording: Recording) -> int | None:
    """Wall time from start to end in nanoseconds, where the run has ended."""
    if recording.end is None:
        return None
    return max(0, cast(int, recording.end["at"]) - cast(int, recording.start["at"]))


def _shown(output: Tree) -> Tree:
    """The output of a script is its stdout and its exit code; in short what it printed."""
    if isinstance(output, dict) and isinstance(printed := output.get("stdout"), str) and "exit" in output:
        return printed.rstrip("\n")
    return output


def _mark(recording: Recording, mark: dict[str, Tree]) -> str:
    """What a flag or a note says, in one line."""
    blob = mark.get("val")
    if not isinstance(blob, str):
        return ""
    return brief(cast("Tree", or_missing(lambda: recording.journal.tree(blob))), 80)


def _gap(recording: Recording, gap: dict[str, Tree]) -> str:
    """What passed unrecorded, and where in the code."""
    blob = gap.get("val")
    fact = cast("Tree", or_missing(lambda: recording.journal.tree(blob))) if isinstance(blob, str) else None
    if isinstance(fact, dict) and "what" in fact:
        return f"{fact['what']} ({fact.get('where', '?')})"
    return str(gap.get("why", "unknown"))


def _tail(recording: Recording) -> list[list[Span]]:
    """What comes after the calls: gaps, flags and notes, the output."""
    lines: list[list[Span]] = [
        [("warn", "gap"), f"  not replayable past entry {gap['seq']}: {_gap(recording, gap)}"]
        for gap in recording.gaps[:3]
    ]
    for mark in recording.marks:
        if mark["kind"] in ("flag", "note") and len(lines) < 6:
            lines.append([("strong", str(mark["kind"])), f"  {_mark(recording, mark)}"])
    if recording.end is None and recording.open_asks():
        lines += _waits(recording)
    elif recording.end is None:
        lines.append([("warn", "no end"), "  the run is going on, or its process died"])
    else:
        name = "error" if "err" in recording.end else "output"
        output = cast("Tree", or_missing(recording.output))
        text = error_words(output, 90) if name == "error" else brief(_shown(output), 90)
        lines.append([("bad" if name == "error" else "strong", name), f"  {text}"])
    return lines


def _waits(recording: Recording) -> list[list[Span]]:
    """What the run waits for, and how to give it that, in a few lines; all of it says ``agentloom inbox``."""
    asks, now = open_asks(recording), time.time_ns()
    several = sum(ask.kind == "answer" for ask in asks) > 1
    lines: list[list[Span]] = []
    for ask in asks[:3]:
        due: list[Span] = [] if ask.due is None else [("dim", f"  due {moment(ask.due, now)}")]
        label, text = wait_words(ask)
        lines.append([("warn", "waits"), f"  {label} {shorten(text, 90)}", *due])
        lines.extend([("dim", f"       {shorten(line, 90)}")] for line in commands(ask, several=several)[:1])
    if len(asks) > 3:
        lines.append([("dim", f"       and for {len(asks) - 3} more: agentloom inbox")])
    return lines


def _run_json(recording: Recording, found: Found) -> dict[str, object]:
    start = recording.start
    return {
        "run": recording.run,
        "file": found.path,
        "agent": recording.agent,
        "entry": recording.entry,
        "status": "suspended" if recording.end is None and recording.open_asks() else recording.status,
        "asks": [ask.facts() for ask in open_asks(recording)] if recording.end is None else [],
        "started_ns": start["at"],
        "duration_ns": _span(recording),
        "seed": recording.seed,
        "guard": or_missing(lambda: recording.guard),
        "secrets": [secret.facts() for secret in recording.secrets().values()],
        "head": recording.journal.head,
        "torn_bytes": recording.journal.torn,
        "tags": or_missing(lambda: recording.payload("tags")),
        "conversation": or_missing(lambda: recording.payload("conversation")),
        "input": or_missing(lambda: recording.payload("input")),
        "output": or_missing(recording.output),
        "calls": [call_json(recording, call) for call in recording.calls],
        "states": [state_json(recording, state) for state in states_of(recording)],
        "gaps": recording.gaps,
        "marks": recording.marks,
    }


def _call(screen: Screen, recording: Recording, call: RecordedCall, *, everything: bool) -> None:
    status = call.status or "no outcome"
    head: list[Span] = [
        f"call {call.index} of {recording.count}  {call.type} ",
        ("name", call.name),
        f"  {call.id}  ",
        ("good" if status == "ok" else "bad", status),
    ]
    if call.effect:
        head.append(f"  {call.effect}")
    if call.attempt > 1:
        head.append(f"  attempt {call.attempt}")
    screen.line(*head)
    facts = [("made at", call.src), ("key", f"{call.key}  profile {call.profile}")]
    if call.parent:
        facts.append(("parent", call.parent))
    timing = [f"at {duration(call.vt)} of the run"] if call.status else []
    if call.dur is not None:
        timing.append(f"took {duration(call.dur)}")
    if call.chunks:
        timing.append(_plural(call.chunks, "chunk"))
    if timing:
        facts.append(("outcome", ", ".join(timing)))
    if call.usage:
        facts.append(("usage", ", ".join(f"{name} {count}" for name, count in call.usage.items())))
    for name, text in facts:
        screen.line(("dim", f"  {name:8}"), f" {text}")
    _payload(screen, "request", or_missing(lambda: recording.request(call)), everything=everything)
    if call.status in ("ok", "error"):
        outcome = or_missing(lambda: recording.outcome(call))
        streamed = _streamed(recording, call) if outcome is None and call.chunks and not everything else None
        if streamed is not None:
            _payload(screen, "outcome", streamed, everything=False)
            screen.line(("strong", "chunks"), f"  {call.chunks:,}, put together above; --all shows each")
            return
        _payload(screen, "outcome", outcome, everything=everything)
        if outcome is None and call.chunks:
            _payload(
                screen, "chunks", or_missing(lambda: list(recording.chunks_of(call))), everything=everything
            )


def _streamed(recording: Recording, call: RecordedCall) -> Tree:
    """The model's answer that the chunks add up to; None where it is no answer of a known form."""
    chunks = cast("Tree", or_missing(lambda: list(recording.chunks_of(call))))
    answer = answer_of(None, chunks) if call.type == "model" and isinstance(chunks, list) else None
    if answer is None:
        return None
    fields: dict[str, Tree] = {"text": answer.text} if answer.text or not answer.tools else {}
    for number, (name, given) in enumerate(answer.tools):
        fields[f"tool_calls[{number}]"] = {"name": name, "arguments": given}
    return fields


def _payload(screen: Screen, name: str, value: object, *, everything: bool) -> None:
    tree = cast("Tree", value)
    screen.line(("strong", name))
    if everything:
        for line in json.dumps(tree, indent=2, ensure_ascii=False).split("\n"):
            screen.line("  " + line)
        return
    width = min(screen.width, 120) - 4
    rows = (
        list(tree.items())
        if isinstance(tree, dict)
        else list(enumerate(tree))
        if isinstance(tree, list)
        else []
    )
    if not rows or (isinstance(tree, dict) and next(iter(tree)).startswith("$")):
        screen.line("  " + brief(tree, width))
        return
    for key, item in rows[:20]:
        if isinstance(item, list) and item and isinstance(item[0], dict):
            _items(screen, str(key), item, width)
        else:
            screen.line(("path", f"  {key}"), f"  {brief(item, max(20, width - len(str(key))))}")
    if len(rows) > 20:
        screen.line(("dim", f"  ... {len(rows) - 20} more: --all"))


def _items(screen: Screen, key: str, items: list[Tree], width: int) -> None:
    """A list of mappings (messages, tools): one line each, the first two and the last three where there are many."""
    shown = range(len(items)) if len(items) <= 6 else [0, 1, *range(len(items) - 3, len(items))]
    last = -1
    for index in shown:
        if index != last + 1:
            screen.line(("dim", f"  ... {index - last - 1} more: --all"))
        screen.line(("path", f"  {key}[{index}]"), f"  {brief(items[index], max(20, width - len(key) - 6))}")
        last = index


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
