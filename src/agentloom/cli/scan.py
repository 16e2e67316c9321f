"""``agentloom scan``: secrets in the store or in files: where they are and what they are, never the secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import click

from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.runs import RUN, looks_like_a_file
from agentloom.errors import NotSupported, RunNotFound
from agentloom.store import LocalStore

if TYPE_CHECKING:
    from agentloom.cli.render import Span
    from agentloom.cli.scan_files import Finding

__all__ = ["command"]

_SHOWN = 20
_MUCH = 32 << 20  # bytes from which on it takes a while


@click.command(short_help="Find secrets in the store, or in files.")
@click.argument("what", type=RUN, metavar="[WHAT]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every file of the store (the default without WHAT).")
@common
def command(settings: Settings, what: tuple[str, ...], *, everything: bool) -> int:
    """Look for secrets in WHAT (runs, files, folders), or in every file of the store.

    Found are known key formats, values of variables that hold credentials, passwords in addresses, and values of fields
    whose names say that they are secret; in JSON, base64, gzip, percent encoding and hexadecimal too. What was found is
    told by its place, and is never shown. Nothing leaves the machine. Exit code 1 when something was found, or when
    something could not be read.
    """
    from agentloom.cli.scan_files import scan_path

    if what and everything:
        raise click.UsageError("give WHAT, or --all")
    paths = _paths(settings, what)
    found: list[Finding] = []
    unread: list[dict[str, str]] = []
    screen = settings.screen()
    with _progress(paths, hidden=screen.json or settings.quiet) as bar:
        for path in bar:
            try:
                found += scan_path(path)
            except (OSError, NotSupported) as error:
                unread.append({"file": path, "reason": getattr(error, "strerror", None) or str(error)})
    failed = bool(found or unread)
    if screen.json:
        facts = [one.facts() for one in found]
        screen.data({"files": len(paths), "found": facts, "unread": unread, "exit": int(failed)})
    else:
        screen.lines(_lines(found, len(paths), everything=settings.verbosity > 0))
        for one in unread:
            screen.problem(f"{one['file']} could not be searched: {one['reason']}", None)
    return Exit.ERROR if failed else Exit.OK


def _paths(settings: Settings, what: tuple[str, ...]) -> list[str]:
    from agentloom.cli.scan_containers import files_of

    found: dict[str, None] = {}
    named: list[str] = []
    for one in what:
        if os.path.isdir(one):
            found.update(dict.fromkeys(files_of(one)))
        elif not looks_like_a_file(one):
            named.append(one)
        elif os.path.isfile(one):
            found[one] = None
        else:
            raise RunNotFound(f"there is no file {one}", hint="check the path", path=one)
    if named or not what:
        store = settings.open_store()
        if not isinstance(store, LocalStore):
            raise NotSupported("only a store in a folder can be scanned", hint="agentloom scan FILE")
        found.update(
            dict.fromkeys([store.path(store.resolve(run)) for run in named] if what else files_of(store.root))
        )
    return list(found)


def _progress(paths: list[str], *, hidden: bool) -> AbstractContextManager[Iterable[str]]:
    """The paths, with a bar on stderr where that is a terminal and there is more than a moment's work."""
    if hidden or not sys.stderr.isatty() or sum(map(_size, paths)) < _MUCH:
        return nullcontext(paths)
    return click.progressbar(paths, label="scanning", file=sys.stderr)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # said when it is read
        return 0


def _lines(found: list[Finding], count: int, *, everything: bool) -> Iterator[list[Span]]:
    files = f"{count:,} file{'' if count == 1 else 's'}"
    if not found:
        yield [("good", "nothing found"), f"  in {files}"]
        return
    shown = found if everything else found[:_SHOWN]
    name = ""
    for one in shown:
        if one.file != name:
            name = one.file
            yield [("name", name)]
        place = f"call {one.call}  " if one.call else ""
        where = (
            f"{one.field or ''}{' ' + one.path if one.path else ''}"
            if one.offset is None
            else f"byte {one.offset:,}"
        )
        what = f"{one.kind} {one.name}" if one.name else one.kind
        yield ["  ", ("warn", what), f"  {place}{where}"]
    if len(found) > len(shown):
        yield [("dim", f"  and {len(found) - len(shown):,} more: -v shows all")]
    yield [("bad", f"{len(found):,} secret{'' if len(found) == 1 else 's'} found"), f"  in {files}"]
    yield [
        ("label", "next  "),
        "change what was found where it is used; then delete the run, or keep it from others",
    ]
