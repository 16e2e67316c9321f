"""The text form of a report: styled lines, under 1,200 characters whatever the size of the run.

The same facts are rendered at falling levels of detail until they fit; what was left out is counted, not hidden.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentloom.replay.cause import Cause, parse_src
from agentloom.replay.code import CodeChange
from agentloom.replay.fields import Difference
from agentloom.replay.leaks import ALL_LEAKS
from agentloom.replay.text import Line, clip, plain, shorten, show

if TYPE_CHECKING:
    from agentloom.replay.report import CallRef, Finding, Report

__all__ = ["LIMIT", "code_cause_lines", "fit", "render"]

LIMIT = 1200
"""Characters of the text form at most, whatever the size of the run."""


@dataclass(frozen=True, slots=True)
class _Level:
    """How much to show: differences, rows of a text, rows of code, leading calls, next steps, width."""

    differences: int
    rows: int
    code: int
    leading: int
    next: int
    width: int
    loose: bool


# Kinds of leaks whose value would be recognised if an earlier outcome had held it.
_UNIQUE = frozenset(("uuid", "ulid", "token", "time", "random"))

_LEVELS = (
    _Level(4, 4, 3, 3, 3, 100, False),
    _Level(3, 3, 2, 2, 2, 100, False),
    _Level(2, 2, 1, 2, 2, 96, False),
    _Level(1, 2, 1, 1, 2, 88, False),
    _Level(1, 1, 1, 0, 1, 72, False),
    _Level(1, 1, 0, 0, 0, 60, True),
)


def render(report: Report, width: int = 100) -> list[Line]:
    """Styled lines; the first level of detail that fits, at most ``LIMIT`` characters."""
    return fit(list(_render(report, level, min(width, level.width))) for level in _LEVELS)


def fit(versions: Iterable[list[Line]]) -> list[Line]:
    """The first version, from detailed to terse, that stays under ``LIMIT`` characters; else the last one, cut."""
    lines: list[Line] = []
    for lines in versions:
        if len(plain(lines)) < LIMIT:
            return lines
    return _cut(lines, LIMIT - 1)


def _cut(lines: list[Line], limit: int) -> list[Line]:
    kept: list[Line] = []
    used = 0
    for line in lines:
        used += sum(len(text) for _, text in line) + 1
        if used > limit - 8:
            return [*kept, [("dim", "...")]]
        kept.append(line)
    return kept


def _render(report: Report, level: _Level, width: int) -> list[Line]:
    if report.finding is None:
        return _identical(report, level, width)
    finding = report.finding
    out = [_first_line(report, finding)]
    out += _situation(report, finding, width)
    out.append([])
    if finding.sequences is not None:
        out += _sequences(finding, width)
    elif finding.cls == "leak" and report.cause is not None:
        out += _leak_values(finding, report.cause, level, width)
    else:
        out += _differences(finding, level, width)
    if report.cause is not None:
        out += _cause(report.cause, level, width)
    if report.leading and level.leading:
        out.append(_leading(report.leading[-level.leading :], width))
    for note in report.notes[: 1 if level.loose else 3]:
        out.append(_labelled("note", shorten(note, width - 8)))
    return out + _next(report, level, width)


def _labelled(label: str, text: str, style: str = "") -> Line:
    return [("label", label.ljust(8)), (style, text)]


def _identical(report: Report, level: _Level, width: int) -> list[Line]:
    counts = report.counts
    word = "IDENTICAL" if not counts.noted else f"IDENTICAL EXCEPT NOTED ({counts.noted})"
    calls = f"{counts.exact + counts.noted:,}/{counts.total:,} calls"
    facts = ", ".join([calls, *report.compared])
    seconds = "" if report.seconds is None else f"  {report.seconds:.1f} s"
    out: list[Line] = [[("good", word), ("", f"  {facts}{seconds}  $0"), *_unguarded(report)]]
    for item in report.noted[: level.differences]:
        difference = item.comparison.items[0]
        where = f"call {item.call.index} {item.call.kind} {item.call.name}"
        more = item.comparison.total - 1
        out.append(
            _labelled(
                "noted", clip(f"{where}  {_pair(difference)}" + (f"  +{more}" if more else ""), width - 8)
            )
        )
    hidden = counts.noted - len(report.noted[: level.differences])
    if hidden > 0:
        out.append(_labelled("", f"{hidden:,} more calls with noted differences (--json lists them)", "dim"))
    return out + [_labelled("note", shorten(note, width - 8)) for note in report.notes[:3]]


def _pair(difference: Difference) -> str:
    old = "(absent)" if difference.kind == "added" else show(difference.recorded, 24)
    new = "(absent)" if difference.kind == "removed" else show(difference.now, 24)
    return f"{difference.path} {old} -> {new}"


def _first_line(report: Report, finding: Finding) -> Line:
    parts: list[Line] = [[("bad", "DIVERGED"), ("", "  "), ("strong", finding.cls)]]
    call, total = finding.call, report.counts.total
    if finding.last is not None and call is not None and call.index is not None:
        parts.append([("", f"calls {call.index:,}-{finding.last:,} of {total:,}")])
    elif call is not None and call.index is not None and call.index <= total:
        parts.append([("", f"call {call.index:,} of {total:,}")])
    elif call is not None:
        parts.append([("", f"after {report.counts.exact + report.counts.noted:,} of {total:,} calls")])
    if call is not None:
        if finding.last is None:
            parts.append([("", clip(f"{call.kind} {call.name}", 48))])
        parts += [[("path", clip(call.path, 48))]] if call.path else []
    parts.append([("dim", "exit 3")])
    line: Line = []
    for part in parts:
        line += [("", "  "), *part] if line else part
    return line


def _situation(report: Report, finding: Finding, width: int) -> list[Line]:
    counts = report.counts
    matched = counts.exact + counts.noted
    noted = f", {counts.noted:,} of them with noted differences" if counts.noted else " exactly"
    if matched:
        plural = "call" if matched == 1 else "calls"
        before = f"{matched:,} {plural} matched{noted}. Nothing was sent; no tool ran."
    else:
        before = "Nothing was sent; no tool ran."
    out: list[Line] = []
    if finding.cls == "leak":
        out.append([("", "Code and packages are as recorded: something is not deterministic.")])
    if finding.message:
        out.append([("", shorten(finding.message, max(width, 100) * 2))])
    out.append([("", before), *_unguarded(report)])
    return out


def _unguarded(report: Report) -> Line:
    """Said in every report of a run without a guard."""
    return [("dim", "  guard off")] if report.guard == "off" else []


def _where(call: CallRef | None) -> str:
    if call is None:
        return ""
    now, recorded = parse_src(call.src), parse_src(call.src_recorded)
    if now is None:
        return f"{recorded} when recorded" if recorded else ""
    if recorded is None or (recorded.file, recorded.line) == (now.file, now.line):
        return str(now)
    short = f":{recorded.line}" if recorded.file == now.file else str(recorded)
    return f"{now} (recorded {short})"


def _differences(finding: Finding, level: _Level, width: int) -> list[Line]:
    comparison = finding.comparison
    place = _where(finding.call)
    if comparison is None or not comparison.items:
        return [_labelled("at", place, "path")] if place else []
    out: list[Line] = []
    for number, difference in enumerate(comparison.items[: level.differences]):
        tail = f"      {place}" if number == 0 and place else ""
        out += _difference(difference, level, width, tail)
    more = comparison.total - min(level.differences, len(comparison.items))
    if more > 0:
        at_least = "" if comparison.complete else "at least "
        out.append([("dim", f"    {at_least}{more:,} more fields differ (--json lists them)")])
    if comparison.same and not level.loose:
        out.append([("dim", clip(f"    same: {', '.join(comparison.same)}", width))])
    return out


def _difference(difference: Difference, level: _Level, width: int, tail: str) -> list[Line]:
    path = clip(difference.path or "(whole value)", 60)
    lines = difference.lines(width, level.rows)
    if difference.inline() and len(lines) == 1:
        value = lines[0][1:]
        row: Line = [("", "  "), ("path", path.ljust(18)), ("", "  "), *value]
        if sum(len(text) for _, text in row) + len(tail) <= width:
            return [[*row, ("dim", tail)]]
        return [[("", "  "), ("path", path), ("dim", tail)], [("", "    "), *value]]
    return [[("", "  "), ("path", path), ("dim", tail)], *lines]


def _leak_values(finding: Finding, cause: Cause, level: _Level, width: int) -> list[Line]:
    items = finding.comparison.items if finding.comparison else ()
    chosen = [item for item in items if item.path == cause.leak_path] or list(items[:1])
    if not chosen:
        return _differences(finding, level, width)
    item, room = chosen[0], width - 12
    site = parse_src(finding.call.src) if finding.call else None
    place = f"{site} in {site.function}()" if site and site.function.isidentifier() else _where(finding.call)
    out: list[Line] = [[("", "  "), ("path", clip(item.path, 48)), ("dim", f"     {place}")]]
    if item.hunks and isinstance(item.recorded, str) and len(item.recorded) > room:
        out += item.lines(width, level.rows)
    else:
        out.append([("", "  recorded  "), ("old", _bare(item.recorded, room))])
        out.append([("", "  now       "), ("new", _bare(item.now, room))])
    more = (finding.comparison.total if finding.comparison else 1) - 1
    if more > 0:
        out.append([("dim", f"    {more:,} more fields differ (--json lists them)")])
    return out


def _bare(tree: object, width: int) -> str:
    text = show(tree, width)  # type: ignore[arg-type]
    return text[1:-1] if text.startswith('"') and text.endswith('"') else text


def _sequences(finding: Finding, width: int) -> list[Line]:
    recorded, now = finding.sequences or ((), ())
    out: list[Line] = [
        [("", "  recorded  "), ("old", _joined(recorded, width - 12))],
        [("", "  now       "), ("new", _joined(now, width - 12))],
    ]
    place = _where(finding.call)
    return [*out, _labelled("at", place)] if place else out


def _joined(names: tuple[str, ...], width: int) -> str:
    out = ""
    for number, name in enumerate(names):
        piece = clip(name, 40)
        if out and len(out) + len(piece) + 12 > width:
            return f"{out}  ...{len(names) - number} more"
        out += ("  " if out else "") + piece
    return out


def _cause(cause: Cause, level: _Level, width: int) -> list[Line]:
    if cause.kind == "code":
        return code_cause_lines(cause, level.code, width)
    out: list[Line] = []
    if cause.kind == "packages":
        names = ", ".join(str(item) for item in cause.drift[:3])
        more = f" and {len(cause.drift) - 3} more" if len(cause.drift) > 3 else ""
        out.append(
            _labelled("cause", shorten(f"code is the same; packages differ: {names}{more}", width - 8))
        )
    if cause.leak is not None:
        leak = cause.leak
        nowhere = "; in no earlier outcome" if leak.kind in _UNIQUE else ""
        nowhere = f"; call {cause.earlier} returned it" if cause.earlier else nowhere
        out.append([("label", "looks like  "), ("", leak.what + nowhere)])
        guess = " (a guess)" if leak.guess else ""
        out.append([("label", "likely      "), ("", leak.likely + guess)])
        if level.next:
            out.append([("label", "fix         "), ("", leak.fix)])
    elif cause.kind == "unknown":
        what = "the code is the same; nothing recorded explains the difference (a value that bypassed the host calls)"
        if cause.earlier:
            what = f"the code is the same; what is asked for now is what call {cause.earlier} returned"
        out.append(_labelled("cause", shorten(what, width * 2)))
    return out


def code_cause_lines(cause: Cause, rows: int, width: int) -> list[Line]:
    """``cause   code changed: build_prompt(), a1f9c2e..working tree`` and the lines of the first change."""
    first, rest = cause.changes[0], cause.changes[1:]
    names = f"{first.title}{'' if first.what == 'changed' else ' ' + first.what}"
    if first.line is not None:
        names += f" ({first.file}:{first.line})"
    others = [title for title in dict.fromkeys(change.title for change in rest) if title != first.title]
    if others:
        names += " and " + ", ".join(others[:2]) + (f", {len(others) - 2} more" if len(others) > 2 else "")
    unsure = " (none is known to bear on it)" if others else " (the only change)"
    tail = "" if cause.relevant else unsure
    revisions = f", {cause.revisions}" if cause.revisions else ""
    out = [_labelled("cause", shorten(f"code changed: {names}{revisions}{tail}", width * 2))]
    out += _code_lines(first, rows, width)
    if cause.leak is not None and rows:
        out.append(_labelled("or", shorten(f"{cause.leak.what}: {cause.leak.likely}", width - 8)))
    return out


def _code_lines(change: CodeChange, rows: int, width: int) -> list[Line]:
    out: list[Line] = []
    removed = _telling(change.removed, change.literals_recorded)
    added = _telling(change.added, change.literals)
    for sign, style, lines, others in (("-", "old", removed, added), ("+", "new", added, removed)):
        for number, text in lines[:rows]:
            place = f"{change.file}:{number}"
            shown = _around_change(text, [other for _, other in others], width - len(place) - 6)
            out.append([("dim", f"  {place}"), (style, f"  {sign} {shown}")])
    hidden = max(0, len(removed) - rows) + max(0, len(added) - rows)
    if hidden and rows:
        out.append([("dim", f"  {hidden:,} more changed lines")])
    return out


def _around_change(text: str, others: list[str], room: int) -> str:
    """A line that is too long, cut so that it shows where it parts from the one of ``others`` most like it."""
    if len(text) <= room:
        return text
    same = max((_common(text, other) for other in others if other != text), default=0)
    start = max(0, min(same - room // 3, len(text) - room + 3))
    return clip(text, room) if start < 4 else clip("..." + text[start:], room)


def _common(a: str, b: str) -> int:
    """How many characters two texts begin with in common."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _telling(lines: tuple[tuple[int, str], ...], literals: frozenset[str]) -> list[tuple[int, str]]:
    """Lines that hold a changed literal first."""
    return sorted(
        lines, key=lambda row: not any(literal and literal.strip() in row[1] for literal in literals)
    )


def _leading(calls: tuple[CallRef, ...], width: int) -> Line:
    pieces = [
        f"{call.index} {call.kind} {call.name}{' -> ' + call.outcome if call.outcome else ''}"
        for call in calls
    ]
    room = max(20, (width - 8) // len(pieces) - 2)
    return _labelled("before", "  ".join(clip(piece, room) for piece in pieces))


def _next(report: Report, level: _Level, width: int) -> list[Line]:
    out: list[Line] = []
    steps = [step for step in report.next if step[1] != ALL_LEAKS][: level.next]
    if level.next > 1:
        out += [
            [("label", "all leaks   "), ("", command)] for command, why in report.next if why == ALL_LEAKS
        ]
    widest = max((len(command) for command, _ in steps), default=0)
    for number, (command, why) in enumerate(steps):
        text = command.ljust(widest + 3) + why if why else command
        out.append(_labelled("next" if number == 0 else "", shorten(text, max(width, 100) - 8)))
    return out
