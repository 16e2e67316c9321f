"""``agentloom scan``: secrets in the store or in a file: where they are and what they are, never the secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@click.command(short_help="Find secrets in the store, or in a file.")
@click.argument("run", type=RUN, required=False)
@click.option("--all", "everything", is_flag=True, help="Every file of the store (the default without RUN).")
@common
def command(settings: Settings, run: str | None, *, everything: bool) -> int:
    """Look for secrets in RUN (a run or any file), or in every file of the store.

    Found are known key formats, values of variables that hold credentials, passwords in addresses, and values of fields
    whose names say that they are secret; in JSON, base64, gzip, percent encoding and hexadecimal too. What was found is
    told by its place, and is never shown. Nothing leaves the machine. Exit code 1 when something was found.
    """
    from agentloom.cli.scan_files import scan_path

    if run is not None and everything:
        raise click.UsageError("give RUN, or --all")
    found: list[Finding] = []
    count = 0
    for path in _paths(settings, run):
        count += 1
        found += scan_path(path)
    screen = settings.screen()
    if screen.json:
        screen.data({"files": count, "found": [one.facts() for one in found], "exit": int(bool(found))})
    else:
        screen.lines(_lines(found, count, everything=settings.verbosity > 0))
    return Exit.ERROR if found else Exit.OK


def _paths(settings: Settings, run: str | None) -> list[str]:
    from agentloom.cli.scan_files import files_of

    if run is not None and looks_like_a_file(run):
        if not os.path.isfile(run):
            raise RunNotFound(f"there is no file {run}", hint="check the path", path=run)
        return [run]
    store = settings.open_store()
    if not isinstance(store, LocalStore):
        raise NotSupported("only a store in a folder can be scanned", hint="agentloom scan FILE")
    return [store.path(store.resolve(run))] if run is not None else list(files_of(store.root))


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
