"""``agentloom inbox``: what the runs of a store wait for somebody to say."""

from __future__ import annotations

import time

import click

from agentloom.api.answering import inbox
from agentloom.cli.asking import ask_lines, span
from agentloom.cli.options import Settings, common
from agentloom.cli.runs import short
from agentloom.runtime.asks import OpenAsk

__all__ = ["command"]


@click.command(short_help="Open questions, the oldest first.")
@click.option("--answered", is_flag=True, help="Also those that were answered, whose runs did not go on yet.")
@common
def command(settings: Settings, *, answered: bool) -> None:
    """The questions and messages that runs wait for, the oldest first, with the command lines that answer them."""
    found = inbox(settings.open_store(), answered=answered)
    screen, now = settings.screen(), time.time_ns()
    if screen.json:
        screen.data({"asks": [one.facts() for one in found]})
        return
    runs = list(dict.fromkeys(one.run for one in found))
    for run in runs:
        asks = [one for one in found if one.run == run]
        ago = span(max(0, now - asks[0].asked_at))
        screen.line(("name", short(run, runs)), f"  {asks[0].agent}  ", ("dim", f"asked {ago} ago"))
        for ask in asks:
            screen.lines(ask_lines(ask, screen.width, several=_several(asks), now=now))
    if not found:
        screen.note("nobody is waited for")
    elif any(one.answered is None for one in found):
        screen.note(("dim", "answered runs go on with: agentloom work, or agentloom resume RUN"))


def _several(asks: list[OpenAsk]) -> bool:
    return sum(one.kind == "answer" and one.answered is None for one in asks) > 1
