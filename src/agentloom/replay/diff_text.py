"""The text form of a diff: styled lines, under 1,200 characters whatever the size of the runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentloom.replay.fields import Comparison, Difference
from agentloom.replay.report_text import code_cause_lines, fit
from agentloom.replay.text import Line, clip, shorten, show

if TYPE_CHECKING:
    from agentloom.replay.diff import Diff, Odds, Row

__all__ = ["render"]


@dataclass(frozen=True, slots=True)
class _Level:
    """How many changed rows, fields of each, and code lines to show."""

    rows: int
    fields: int
    code: int


_LEVELS = (
    _Level(6, 4, 3),
    _Level(5, 3, 2),
    _Level(4, 2, 1),
    _Level(3, 1, 1),
    _Level(2, 1, 0),
    _Level(1, 1, 0),
)


def render(found: Diff, width: int = 100) -> list[Line]:
    """Styled lines; the first level of detail that fits."""
    return fit(list(_render(found, level, width)) for level in _LEVELS)


def _render(found: Diff, level: _Level, width: int) -> list[Line]:
    out: list[Line] = [[("good" if found.same else "bad", _headline(found))], _summary(found, width)]
    changed = [row for row in found.rows if row.status != "same"]
    if changed or found.input or found.output:
        out.append([])
    if found.input:
        out += _comparison_lines(found.input, level.fields, width, indent=2)
    for row in changed[: level.rows]:
        out += _row(found, row, level, width)
    if len(changed) > level.rows:
        out.append([("dim", f"  {len(changed) - level.rows:,} more calls differ (--json lists them)")])
    if found.output:
        out += _comparison_lines(found.output, level.fields, width, indent=2)
    if found.statuses[0] != found.statuses[1]:
        out.append([("", f"  ended    {found.statuses[0]} -> {found.statuses[1]}")])
    if not found.same:
        out += _cause(found, level, width)
    tail = _tail(found)
    return [*out, tail] if tail else out


def _headline(found: Diff) -> str:
    first = found.first
    if found.part == "none":
        return f"SAME: {len(found.rows):,} calls and the output are equal."
    at = "" if first is None else f" at {_number(first)}"
    if found.part == "input":
        return f"PART at the input: {_paths(found.input)}." + (
            f" The first call that differs is{at[3:]}." if at else ""
        )
    if found.part == "output":
        return f"PART at the output: every call is the same, {_paths(found.output)} differs."
    if found.part == "end" or first is None:
        return f"PART at the end: one run {found.statuses[0]}, the other {found.statuses[1]}; every call is the same."
    if found.part == "outcome" and first.ref.kind == "state":
        return f"PART{at}: {_answered(first)}."
    if found.part == "outcome":
        return f"PART{at}: same request, {_answered(first)}."
    if found.part == "request":
        return f"PART{at}: another request, {_paths(first.request)} differs."
    if found.part == "moved":
        return f"PART{at}: the same calls in another order."
    name = found.names[0] if found.part == "only here" else found.names[1]
    return f"PART{at}: {first.ref.kind} {first.ref.name} is made only in {name}."


def _number(row: Row) -> str:
    index = row.ref.index
    return f"call {index:,}" if index is not None else f"{row.ref.kind} {row.ref.name}"


def _paths(comparison: Comparison | None) -> str:
    if comparison is None or not comparison.items:
        return "a field"
    more = comparison.total - 1
    return comparison.items[0].path + (f" and {more:,} more" if more else "")


def _answered(row: Row) -> str:
    kind, name = row.ref.kind, row.ref.name
    item = row.outcome.items[0] if row.outcome and row.outcome.items else None
    if row.statuses[0] != row.statuses[1]:
        return f"{name} ended {row.statuses[0]} in one and {row.statuses[1]} in the other"
    if kind == "state" and item is not None and item.path == f"{name}.goto":
        return "another step was chosen"
    if row.served:
        more = len(row.served) - 1
        return f"the server serves other tools ({row.served[0]}" + (f" and {more:,} more)" if more else ")")
    if kind != "model":
        return f"{name} returned something else"
    if item is not None and "." in item.path and item.kind == "changed":
        return f"the model chose another {_leaf(item.path)}"
    return "the model answered differently"


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _summary(found: Diff, width: int) -> Line:
    parts = [f"{found.names[0]}, {found.names[1]}"]
    counts = found.counts()
    for status, word in (("same", "same"), ("changed", "changed"), ("moved", "moved")):
        if counts[status]:
            parts.append(f"{_ranges(found, status)} {word}")
    for status, name in (("only here", found.names[0]), ("only there", found.names[1])):
        if counts[status]:
            parts.append(f"{counts[status]:,} only in {name}")
    return [("dim", clip("   ".join(parts), width))]


def _ranges(found: Diff, status: str) -> str:
    """``1-2, 5`` of the calls with a status; only the count when there are many ranges."""
    numbers = sorted(
        row.ref.index for row in found.rows if row.status == status and row.ref.index is not None
    )
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    if not spans or len(spans) > 4:
        return f"{found.counts()[status]:,}"
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def _row(found: Diff, row: Row, level: _Level, width: int) -> list[Line]:
    ref = row.ref
    index = f"{ref.index}" if ref.index is not None else "-"
    effect = " WRITE" if ref.effect == "write" else ""
    title = f"  {index} {clip(f'{ref.kind} {ref.name}', 44)}{effect}"
    if row.status in ("only here", "only there"):
        name = found.names[0] if row.status == "only here" else found.names[1]
        return [[("strong", title), ("dim", f"  only in {name}"), ("", clip(f"  {ref.summary}", 48))]]
    if row.status == "moved":
        there = row.there.index if row.there else None
        return [[("strong", title), ("dim", f"  moved: call {ref.index} -> {there}")]]
    note = "" if row.request or ref.kind == "state" else "same request"
    out: list[Line] = [[("strong", title.ljust(24)), ("dim", f"  {note}" if note else "")]]
    if row.request:
        out += _comparison_lines(row.request, level.fields, width, indent=6)
    if row.statuses[0] != row.statuses[1]:
        out.append([("", f"      status        {row.statuses[0]} -> {row.statuses[1]}")])
    if row.served:
        out += [[("", f"      {clip(said, width - 6)}")] for said in row.served]
    elif row.outcome and ref.kind != "model" and row.outcome.total > 3 and row.here and row.there:
        out.append(_whole(row.here.outcome, row.there.outcome))
    elif row.outcome:
        out += _comparison_lines(row.outcome, level.fields, width, indent=6, leaves=ref.kind == "model")
    if row.odds is not None:
        out += _odds_lines(found, row.odds)
    return out


def _whole(here: str, there: str) -> Line:
    """Two outcomes that differ in many places, in a few words each: ``12 items -> 4,031 items``."""
    return [
        ("", "      "),
        ("path", "result".ljust(12)),
        ("", "  "),
        ("old", here),
        ("", "  ->  "),
        ("new", there),
    ]


def _odds_lines(found: Diff, odds: Odds) -> list[Line]:
    here, there = _odds(odds.here), _odds(odds.there)
    if here == there:
        return [[("label", "      probability   "), ("", f"{here} (both runs)")]]
    pairs = [(found.names[0], here), (found.names[1], there)]
    return [
        [("label", "      probability   "), ("", f"{text} ({name})")]
        for name, text in pairs
        if text is not None
    ]


def _odds(odds: dict[str, float] | None) -> str | None:
    if odds is None:
        return None
    return ", ".join(f"{clip(name.strip() or repr(name), 24)} {value:.2f}" for name, value in odds.items())


def _comparison_lines(
    comparison: Comparison, fields: int, width: int, *, indent: int, leaves: bool = False
) -> list[Line]:
    out: list[Line] = []
    for item in comparison.items[:fields]:
        out += _item(item, _leaf(item.path) if leaves else item.path, width, " " * indent)
    more = comparison.total - min(fields, len(comparison.items))
    if more > 0:
        out.append([("dim", f"{' ' * indent}{more:,} more fields")])
    return out


def _item(item: Difference, name: str, width: int, pad: str) -> list[Line]:
    name = clip(name or "value", 48)
    head: Line = [("", pad), ("path", name.ljust(12)), ("", "  ")]
    if item.kind in ("added", "removed"):
        value = show(item.now if item.kind == "added" else item.recorded, max(20, width - len(name) - 16))
        style = "new" if item.kind == "added" else "old"
        return [[*head, (style, f"{'+' if item.kind == 'added' else '-'} {value}")]]
    old, new = show(item.recorded, 40), show(item.now, 40)
    if len(old) + len(new) + len(pad) + len(name) + 8 <= width and not item.hunks[1:]:
        return [[*head, ("old", old), ("", "  ->  "), ("new", new)]]
    rows: list[Line] = [[("", pad[2:]), *line] for line in item.lines(width - len(pad), 2)]
    return [[("", pad), ("path", name)], *rows]


def _cause(found: Diff, level: _Level, width: int) -> list[Line]:
    words = {
        "sampling": "sampling: the request is the same, parameters and model included",
        "result": "the world: the same request was answered differently",
        "input": "the runs were given different input",
        "unknown": "the code is the same; nothing recorded explains it (a value that bypassed the host calls)",
    }
    cause = found.cause
    if cause is not None and cause.kind == "code":
        return code_cause_lines(cause, level.code, width)
    if cause is not None and cause.kind == "packages":
        return [
            _labelled("cause", shorten("packages differ: " + ", ".join(map(str, cause.drift[:3])), width))
        ]
    if cause is not None and cause.leak is not None:
        guess = " (a guess)" if cause.leak.guess else ""
        return [_labelled("cause", f"a leak: {cause.leak_path} looks like {cause.leak.what}{guess}")]
    return [_labelled("cause", words.get(found.why, words["unknown"]))]


def _tail(found: Diff) -> Line:
    hidden = ", ".join(
        f"{count:,} {word if count > 1 else word[:-1]}" for word, count in found.hidden.items() if count
    )
    here, there = found.totals
    tokens = sum(there.tokens.get(name, 0) - here.tokens.get(name, 0) for name in ("input", "output"))
    parts = [f"hidden  {hidden}"] if hidden else []
    if here.tokens or there.tokens:
        parts.append(f"tokens {tokens:+,}")
    if here.seconds is not None and there.seconds is not None:
        parts.append(f"time {here.seconds:.1f} s -> {there.seconds:.1f} s")
    return [("dim", "    ".join(parts))] if parts else []


def _labelled(label: str, text: str) -> Line:
    return [("label", label.ljust(8)), ("", text)]
