"""``agentloom signal RUN NAME [VALUE]``: send a named message to a run."""

from __future__ import annotations

import json
from typing import Any

import click

from agentloom.api.answering import send_signal
from agentloom.cli.answer import by_option, login_name
from agentloom.cli.options import Settings, common
from agentloom.cli.runs import WAITING_RUN, short
from agentloom.errors import MailTaken

__all__ = ["command"]


@click.command(short_help="Send a named message to a run.")
@click.argument("run", type=WAITING_RUN)
@click.argument("name")
@click.argument("value", required=False)
@by_option
@click.option("--key", metavar="ID", help="An id of the message: with the same one it is sent once.")
@common
def command(
    settings: Settings, run: str, name: str, value: str | None, *, by: str | None, key: str | None
) -> None:
    """Send the message NAME to RUN, with VALUE (JSON where it is JSON, else text; default: null).

    It is kept until the run takes it by signal("NAME"), also where it has not come there yet. The same --key again
    sends nothing, so that a sender can try again.
    """
    store = settings.open_store()
    run = store.resolve(run)
    again = False
    try:
        mail = send_signal(run, name, _value(value), by=by or login_name(), key=key, store=store, via="cli")
    except MailTaken as taken:
        if key is None:
            raise
        mail, again = taken.existing, True
    screen = settings.screen()
    if screen.json:
        screen.data({"run": run, "name": mail.name, "key": mail.key, "value": mail.value, "sent": not again})
        return
    screen.line(("good", "was sent before " if again else "sent "), mail.name, " to ", ("name", short(run)))
    screen.note(("dim", f"a suspended run goes on with: agentloom resume {short(run)}, or by agentloom work"))


def _value(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
