"""``agentloom export`` and ``agentloom import``: traces between a store and files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agentloom.cli.options import Settings, common
from agentloom.cli.render import size
from agentloom.cli.runs import RUN, find, naming
from agentloom.errors import IntegrityError, StoreFailed
from agentloom.format.journal import check
from agentloom.store import read_file, write_file

__all__ = ["export", "import_"]


@click.command("export", short_help="Copy a run into a file.")
@click.argument("run", type=RUN)
@click.option(
    "-o", "--output", metavar="FILE", help="FILE.loom, or FILE.loom.zst for a compressed one; '-' is stdout. "
    "Default: the run's id with .loom, in the current folder.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace FILE when it exists.")
@common
def export(settings: Settings, run: str, *, output: str | None, force: bool) -> None:
    """Copy RUN into a file that can be mailed, kept, and imported elsewhere.

    The head that it prints is the digest of the last entry: kept elsewhere, it later proves that nothing was altered
    (agentloom verify FILE --head HEAD).
    """
    found = find(settings, run)
    verdict = check(found.data)
    if not verdict.consistent:
        where = "" if verdict.line is None else f" (line {verdict.line}, byte {verdict.offset})"
        raise IntegrityError(
            verdict.code or "?",
            f"{found.name} is no consistent trace: {verdict.message}{where}",
            hint=f"agentloom verify {found.name} says what still holds; to keep it as it is, copy the file itself",
        )
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(found.data)
        return
    target = Path(output or f"{found.run or Path(run).name.split('.')[0]}.loom")
    if not target.name.endswith((".loom", ".loom.zst")):
        raise click.BadParameter(f"{target}: a trace file ends in .loom or .loom.zst", param_hint="--output")
    if target.exists() and not force:
        raise StoreFailed(
            f"{target} exists", hint="choose another name with -o, or --force", path=str(target)
        )
    write_file(target, found.data)
    written = target.stat().st_size
    screen = settings.screen()
    if screen.json:
        facts = {"file": str(target), "run": found.run, "bytes": written, "head": verdict.head}
        screen.data(facts)
    else:
        screen.line(f"{target}  {size(written)}  head {verdict.head}")


@click.command("import", short_help="Take a trace file into the store.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@common
def import_(settings: Settings, files: tuple[str, ...]) -> None:
    """Take trace files (.loom, .loom.zst) into the store; each is checked first, and kept as it is.

    The same trace twice changes nothing. A damaged one, or another trace of the same id, is refused.
    """
    store = settings.open_store()
    done: list[dict[str, str]] = []
    screen = settings.screen()
    for file in files:
        with naming(file):
            run = store.add(read_file(file))
        done.append({"file": file, "run": run})
        if not screen.json:
            screen.line(f"{run}  from {file}")
    if screen.json:
        screen.data({"imported": done})
