"""``agentloom diff A B``: where two runs part, and why."""

from __future__ import annotations

import click

from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.runs import RUN, find
from agentloom.replay.diff import diff

__all__ = ["command"]


@click.command(short_help="Where two runs part, and why.")
@click.argument("a", type=RUN)
@click.argument("b", type=RUN)
@common
def command(settings: Settings, a: str, b: str) -> int:
    """Align the calls of A and B, and say where they part first, and why.

    Ids and times, which differ in every run, are counted and not shown. Exit code 0: the same; 3: they part.
    """
    here, there = find(settings, a), find(settings, b)
    names = (here.name, there.name)
    found = diff(here.journal(), there.journal(), names=names if names[0] != names[1] else None)
    screen = settings.screen()
    if screen.json:
        screen.data(found.to_json())
    else:
        screen.lines(found.render(min(screen.width, 100)))
    return Exit.OK if found.same else Exit.DIVERGENCE
