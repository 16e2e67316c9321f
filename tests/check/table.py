"""``python -m tests.check.table``: what ``agentloom check`` says of each seeded leak and of its clean twin.

Each agent is looked at as the command does it; those that a double run finds are recorded (only their tools run) and
replayed in other worlds with ``--replay``. Without it the table says what the tests hold those to.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from agentloom.cli.main import main
from tests.check.seeded import SEEDS, Seed

GIVEN = "alpha beta gamma delta"
"""What every agent is asked: words that have many orders."""


def checked(path: Path, *options: str) -> dict[str, Any]:
    """What ``agentloom check PATH`` says, as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["check", str(path), "--json", *options])
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def doubled(seed: Seed, path: Path, folder: Path) -> dict[str, Any]:
    """Record the agent at ``path`` in ``folder`` and check it with a double run."""
    copy = folder / path.name
    copy.write_text(path.read_text("utf-8"), "utf-8")
    store = ("--store", str(folder / "store"))
    return checked(
        Path(f"{copy}:{seed.agent}"),
        "--only",
        "double-run",
        "--record",
        "--input",
        GIVEN,
        "--worlds",
        "2",
        *store,
    )


def row(seed: Seed, *, replay: bool) -> str:
    """One row of the table."""
    found = checked(seed.leak, "--skip", "double-run")["findings"]
    named = [f"`{one['check']}`, line {one['line']}" for one in found]
    if seed.facet is not None:
        facet = seed.facet
        if replay:
            with tempfile.TemporaryDirectory() as folder:
                differs = doubled(seed, seed.leak, Path(folder))["double_run"]["differences"]
            facet = ", ".join(differs[0]["facets"]) if differs else "nothing"
        named.append("`double-run`: " + (facet if facet == "every replay" else f"another {facet}"))
    clean = len(checked(seed.clean, "--skip", "double-run")["findings"])
    code = seed.code.replace("|", "\\|")
    return f"| {seed.name} | `{code}` | {'; '.join(named)} | {clean or 'none'} |"


def rows(*, replay: bool = False) -> list[str]:
    """The whole table, with its head."""
    head = ["| agent | the leak | found | in its clean twin |", "| --- | --- | --- | --- |"]
    return [*head, *(row(seed, replay=replay) for seed in SEEDS)]


if __name__ == "__main__":
    os.environ["NO_COLOR"] = "1"
    print("\n".join(rows(replay="--replay" in sys.argv)))
