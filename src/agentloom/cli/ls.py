"""``agentloom ls``: find runs."""

from __future__ import annotations

import dataclasses
import difflib
import re
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from agentloom.cli.asking import moment
from agentloom.cli.options import Settings, common
from agentloom.cli.render import Span, clean, duration
from agentloom.cli.runs import short
from agentloom.store import Query, RunRow, Store
from agentloom.store.find import tag_fits, wanted_tags

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command", "row_json", "since"]

_AGO = re.compile(r"([0-9]+)\s*([smhdw])\Z")
_DAYS = {"today": 0, "yesterday": 1}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_STYLES = {
    "completed": "good", "failed": "bad", "crashed": "bad", "damaged": "bad", "running": "warn", "suspended": "warn",
}  # fmt: skip


def since(text: str, now: datetime | None = None) -> int:
    """A point in time as nanoseconds since the Unix epoch: ``30m``, ``2h``, ``3d``, ``1w`` ago, ``today`` or
    ``yesterday`` (their midnight), or an ISO date or time. One without a zone is local. Raises ``click.BadParameter``.
    """
    word = text.strip().lower().removesuffix(" ago")
    now = now or datetime.now(UTC)
    try:
        if match := _AGO.match(word):
            moment = now - timedelta(**{_UNITS[match[2]]: int(match[1])})
        elif word in _DAYS:
            day = now.astimezone().replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
            moment = (day - timedelta(days=_DAYS[word])).astimezone()  # midnight as it was on that day
        else:
            moment = datetime.fromisoformat(text.strip()).astimezone()
        return int(moment.timestamp()) * 10**9 + moment.microsecond * 1000
    except (ValueError, OverflowError, OSError) as error:
        raise click.BadParameter(
            f"{text!r} is no time: give 30m, 2h, 3d, 1w, today, yesterday, 2026-11-28 or 2026-11-28T09:04",
            param_hint="--since",
        ) from error


@click.command(short_help="Find runs.")
@click.option(
    "--tag",
    "tags",
    metavar="TAG",
    multiple=True,
    help="Runs with this tag: key=value, or the value alone; repeatable, all must hold.",
)
@click.option(
    "--since", "start", metavar="WHEN", help="Started at or after WHEN: 2h, 3d, yesterday, 2026-11-28T09:04."
)
@click.option("--failed", is_flag=True, help="Runs that failed or crashed.")
@click.option("--tool", metavar="NAME", help="Runs that called this tool.")
@click.option("--agent", metavar="NAME", help="Runs of this agent.")
@click.option("--conversation", metavar="ID", help="Runs of this conversation.")
@click.option(
    "--text", metavar="TEXT", help="Runs in whose conversation TEXT is; reads every trace that fits."
)
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="At most so many; 0: all."
)
@common
def command(
    settings: Settings,
    *,
    tags: tuple[str, ...],
    start: str | None,
    failed: bool,
    tool: str | None,
    agent: str | None,
    conversation: str | None,
    text: str | None,
    limit: int,
) -> None:
    """Find runs, the newest first."""
    query = Query(
        tag=tags or None,
        since=None if start is None else since(start),
        failed=failed,
        tool=tool,
        agent=agent,
        conversation=conversation,
        text=text,
        limit=limit + 1 if limit else None,
    )
    rows = settings.open_store().runs(query)
    more = bool(limit) and len(rows) > limit
    rows = rows[:limit] if limit else rows
    screen = settings.screen()
    if screen.json:
        screen.data({"runs": [row_json(row) for row in rows], "more": more})
        return
    for spans in _lines(rows):
        screen.line(*spans)
    if more:
        screen.note(("dim", "more runs fit: --limit 0 shows all"))
    if not rows:
        asked = query != Query(limit=query.limit)
        screen.note(
            _no_run_fits(settings.open_store(), query)
            if asked
            else "no runs yet: record one with `agentloom run script.py`"
        )


def _no_run_fits(store: Store, query: Query) -> str:
    """Says which of the names asked for no run has, and what is close to it."""
    rows = store.runs()
    tags = {tag for row in rows for tag in row.tags}
    known: list[tuple[str, str | None, set[str]]] = [
        *(("tag", tag, tags) for tag in wanted_tags(query)),
        ("tool", query.tool, {name for row in rows for name in row.tools}),
        ("agent", query.agent, {row.agent for row in rows}),
        ("conversation", query.conversation, {row.conversation for row in rows if row.conversation}),
    ]
    for what, wanted, names in known:
        if wanted is None or wanted in names or (what == "tag" and tag_fits(names, wanted)):
            continue
        close = difflib.get_close_matches(wanted, sorted(names - {""}), n=3, cutoff=0.5)
        nearest = f": did you mean {', '.join(map(clean, close))}?" if close else ""
        return f"no run fits; none has the {what} {clean(wanted)}{nearest}"
    return "no run fits"


def row_json(row: RunRow) -> dict[str, object]:
    """A row as ``--json`` shows it: the fields of the store's row, and the start as an ISO time in UTC."""
    started = datetime.fromtimestamp(row.started / 1e9, UTC).isoformat() if row.started else None
    facts: dict[str, object] = dataclasses.asdict(row)
    return facts | {"total": row.total, "started_at": started}


def _lines(rows: Sequence[RunRow]) -> list[list[Span]]:
    names = [row.run for row in rows]
    cells = [
        (
            short(row.run, names),
            datetime.fromtimestamp(row.started / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S")
            if row.started
            else "?",
            "ok" if row.status == "completed" else row.status,
            clean(row.agent or "?"),
            _calls(row),
        )
        for row in rows
    ]
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in range(5)]
    return [
        [
            ("name", cell[0].ljust(widths[0])),
            "  " + cell[1].ljust(widths[1]) + "  ",
            (_STYLES.get(row.status, ""), cell[2].ljust(widths[2])),
            "  " + cell[3].ljust(widths[3]) + "  " + cell[4].ljust(widths[4]) + "  ",
            ("dim", _extra(row)),
        ]
        for row, cell in zip(rows, cells, strict=True)
    ]


def _calls(row: RunRow) -> str:
    """``5 calls: 3 model, 2 tool``."""
    count = f"{row.total:,} call{'' if row.total == 1 else 's'}"
    kinds = [f"{number:,} {kind}" for kind, number in row.calls.items() if kind]
    return f"{count}: {', '.join(kinds)}" if kinds else count


def _extra(row: RunRow) -> str:
    """What else there is to say: how long, what it waits for and how long, tags, flags, why it is damaged."""
    parts = (
        [duration(row.ended - row.started)] if row.ended and row.started and row.ended >= row.started else []
    )
    if row.asks and row.ended is None:
        parts.append(
            f"{'waits for' if row.status == 'suspended' else 'asks'} {', '.join(map(clean, row.asks[:4]))}"
        )
        parts[-1] += f" and {len(row.asks) - 4} more" if len(row.asks) > 4 else ""
    if row.due is not None and row.ended is None:
        parts.append(f"due {moment(row.due, time.time_ns())}")
    parts += [clean(tag) for tag in row.tags]
    if row.flags:
        parts.append(f"{row.flags} flag{'' if row.flags == 1 else 's'}")
    if row.problem:
        parts.append(clean(row.problem))
    return "  ".join(parts)
