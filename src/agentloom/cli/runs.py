"""How commands name a run: an id, its start or end, ``last``, a tag, or a trace file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from agentloom.cli.options import Settings
from agentloom.errors import LoomError, TraceError
from agentloom.format.journal import Journal
from agentloom.store import LocalStore, Query, large_file, read_file

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from click.shell_completion import CompletionItem

    from agentloom.store.scan import Source

__all__ = ["RUN", "WAITING_RUN", "Found", "find", "large", "looks_like_a_file", "named", "naming", "short"]

_SHORTEST = 4
_OFFERED = 30  # runs that a shell offers


@dataclass(frozen=True, slots=True)
class Found:
    """The bytes of a trace and where they come from: a ``run`` of the store, or a file at ``path``."""

    data: bytes
    run: str | None
    path: str | None

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self.path or short(self.run or "?")

    @property
    def full_name(self) -> str:
        """What to call it where the run's whole id is wanted."""
        return self.path or f"run {self.run}"

    def journal(self, *, strict: bool = True) -> Journal:
        """The trace, parsed. Raises ``FormatError`` or ``IntegrityError`` that name it."""
        with naming(self.full_name):
            return Journal.parse(self.data, strict=strict)


def named(error: TraceError, what: str) -> TraceError:
    """What is wrong with a trace, with the trace's name in the message and something to do."""
    if not error.message.startswith(what):
        error.message = f"{what}: {error.message}"
    error.args = (error.message,)
    if error.hint is None:
        error.hint = (
            "name a trace file: `agentloom export RUN` makes one"
            if error.code.startswith("file.")
            else f"get an undamaged copy; `agentloom verify {what.removeprefix('run ')}` says what still holds"
        )
    return error


@contextmanager
def naming(what: str) -> Generator[None]:
    """As ``named``, for what is raised in the block."""
    try:
        yield
    except TraceError as error:
        named(error, what)
        raise


def looks_like_a_file(ref: str) -> bool:
    """Whether ``ref`` is meant as a path: it has a folder or a trace's suffix, or is an existing file."""
    return os.sep in ref or ref.endswith((".loom", ".loom.zst", ".zst")) or os.path.isfile(ref)


def find(settings: Settings, ref: str) -> Found:
    """The trace that ``ref`` names. Raises ``RunNotFound``, ``AmbiguousRun``, ``StoreError``, ``FormatError``."""
    if looks_like_a_file(ref):
        return Found(read_file(ref), None, ref)
    store = settings.open_store()
    run = store.resolve(ref)
    return Found(store.read(run), run, None)


@contextmanager
def large(settings: Settings, ref: str) -> Generator[tuple[Source, Found] | None]:
    """The trace that ``ref`` names, for reading parts of it while the block lasts, and its name (without bytes).

    None where it is small or compressed, or its store gives no parts. Raises as ``find``.
    """
    if looks_like_a_file(ref):
        path, found = ref, Found(b"", None, ref)
    else:
        store = settings.open_store()
        run = store.resolve(ref)
        if not isinstance(store, LocalStore):
            yield None
            return
        path, found = store.path(run), Found(b"", run, None)
    with large_file(path) as source:
        yield None if source is None else (source, found)


def short(run: str, among: Iterable[str] = ()) -> str:
    """The shortest end of ``run`` (four characters or more) that ends none of the others ``among``.

    Ids begin with the time, so it is their end that tells runs apart; every command takes it for the run.
    """
    others = [other for other in among if other != run]
    for length in range(_SHORTEST, len(run)):
        if not any(other.endswith(run[-length:]) for other in others):
            return run[-length:]
    return run


class _RunName(click.ParamType[str]):
    """An argument that names a run; the shell completes the newest runs of the store, ``last``, and files. ``waiting``:
    only those that wait for somebody."""

    name = "run"

    def __init__(self, *, waiting: bool = False) -> None:
        self.waiting = waiting

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            query = Query(limit=None if self.waiting else _OFFERED)
            rows = ctx.ensure_object(Settings).open_store().runs(query)
        except LoomError:  # a completion has no place to say why; the command itself will
            rows = []
        names = [row.run for row in rows]
        if self.waiting:
            rows = [row for row in rows if row.asks][:_OFFERED]
        offers = [("last", "the newest run")] if rows and not self.waiting else []
        offers += [(short(row.run, names), f"{row.agent} {row.status}") for row in rows]
        found = [CompletionItem(name, help=text) for name, text in offers if name.startswith(incomplete)]
        return found if self.waiting else [*found, CompletionItem(incomplete, type="file")]


RUN = _RunName()
"""The type of RUN arguments."""

WAITING_RUN = _RunName(waiting=True)
"""The same, of commands for runs that wait."""
