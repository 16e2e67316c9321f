"""Finding runs: what fits a query, and which run a word means. Shared by all stores that list `RunRow` values."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import cast

import orjson

from agentloom.errors import AmbiguousRun, RunNotFound
from agentloom.store.base import MIN_PREFIX, Query, RunRow

__all__ = ["fits", "missing", "resolve", "tag_fits", "tags_of", "wanted_tags"]

_SHOWN = 8  # matches that a message lists


def tags_of(tree: object) -> tuple[str, ...]:
    """The tags that a decoded ``tags`` or ``tag`` payload holds: ``key=value`` for mappings, else the text itself."""
    if isinstance(tree, dict):
        pairs = cast("dict[str, object]", tree).items()
        return tuple(f"{key}={_word(value)}" for key, value in pairs if not key.startswith("$"))
    if isinstance(tree, list):
        return tuple(tag for item in cast("list[object]", tree) for tag in tags_of(item))
    return () if tree is None else (_word(tree),)


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def tag_fits(tags: Iterable[str], wanted: str) -> bool:
    """Whether one of the tags is ``wanted``, as a whole or in its value."""
    return bool(wanted) and any(wanted in (tag, tag.partition("=")[2]) for tag in tags)


def fits(row: RunRow, query: Query) -> bool:
    """Whether the row fits all of the query but its text and limit. A damaged run fits only an open question."""
    if query.since is not None and row.started < query.since and row.status != "damaged":
        return False
    if query.failed and row.status not in ("failed", "crashed"):
        return False
    if query.agent is not None and row.agent != query.agent:
        return False
    if query.conversation is not None and row.conversation != query.conversation:
        return False
    if query.tool is not None and query.tool not in row.tools:
        return False
    return all(tag_fits(row.tags, tag) for tag in wanted_tags(query))


def wanted_tags(query: Query) -> tuple[str, ...]:
    """The tags that a run must have, all of them."""
    if query.tag is None:
        return ()
    return (query.tag,) if isinstance(query.tag, str) else query.tag


def describe(row: RunRow) -> str:
    """One line for a person: id, time, agent, status."""
    when = (
        datetime.fromtimestamp(row.started / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")
        if row.started
        else "no time"
    )
    return f"{row.run}  {when}  {row.agent or '?'}  {row.status}"


def missing(ref: str, where: str, names: Sequence[str], tags: Iterable[str] = ()) -> RunNotFound:
    """The error for a word that means no run: says where was looked, and what is close."""
    if not names:
        return RunNotFound(
            f"no run {ref!r}: the store is empty (looked in {where})",
            hint="record a run first, or name another store with --store or AGENTLOOM_STORE",
            ref=ref,
            where=where,
            nearest=[],
        )
    tags = set(tags)
    words = tags | {tag.partition("=")[2] for tag in tags}
    close = difflib.get_close_matches(ref, [*names[:2000], *sorted(words - {""})], n=3, cutoff=0.6)
    close += [
        name for name in names[:2000] if len(ref) >= 2 and name.startswith(ref[:4]) and name not in close
    ][:3]
    short = f"; an id needs at least {MIN_PREFIX} of its characters" if len(ref) < MIN_PREFIX else ""
    count = f"{len(names):,} run{'s' if len(names) != 1 else ''}"
    return RunNotFound(
        f"no run {ref!r} among {count} (looked in {where}){short}",
        hint=f"did you mean {', '.join(close[:5])}?" if close else "list the runs with `agentloom ls`",
        ref=ref,
        where=where,
        nearest=close[:5],
    )


def resolve(
    ref: str,
    names: Sequence[str],
    rows: Callable[[Sequence[str]], list[RunRow]],
    tagged: Callable[[str], list[RunRow]],
    all_tags: Callable[[], Iterable[str]],
    where: str,
) -> str:
    """The run that ``ref`` means.

    ``names``: all run ids, newest first; ``rows``: their rows, for messages; ``tagged``: the rows with a tag;
    ``all_tags``: for suggestions. Raises `RunNotFound`, `AmbiguousRun`.
    """
    if ref in names:
        return ref
    if not names or not ref:
        raise missing(ref, where, names)
    if ref == "last":
        return names[0]
    if len(ref) >= MIN_PREFIX:
        matches = [name for name in names if name.startswith(ref)] or [
            name for name in names if name.endswith(ref)
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise _ambiguous(ref, "the id", len(matches), rows(matches[:_SHOWN]))
    by_tag = tagged(ref)
    if len(by_tag) == 1:
        return by_tag[0].run
    if by_tag:
        raise _ambiguous(ref, "the tag", len(by_tag), by_tag[:_SHOWN])
    raise missing(ref, where, names, all_tags())


def _ambiguous(ref: str, what: str, count: int, rows: list[RunRow]) -> AmbiguousRun:
    lines = "".join(f"\n    {describe(row)}" for row in rows)
    more = f"\n    and {count - len(rows):,} more" if count > len(rows) else ""
    return AmbiguousRun(
        f"{ref!r} is {what} of {count:,} runs:{lines}{more}",
        hint="give more of the id",
        ref=ref,
        matches=[row.run for row in rows],
        count=count,
    )
