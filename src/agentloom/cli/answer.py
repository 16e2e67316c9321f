"""``agentloom answer RUN VALUE``: answer a question that a run asks."""

from __future__ import annotations

import getpass
import json
from typing import Any

import click

from agentloom.api.answering import answer
from agentloom.cli.options import Settings, common
from agentloom.cli.runs import WAITING_RUN, short

__all__ = ["by_option", "command", "login_name"]


def login_name() -> str | None:
    """Who is logged in, as far as the system says."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


by_option = click.option(
    "--by", metavar="NAME", help="Who says it; default: the name of the login. Kept in the trace."
)


@click.command(short_help="Answer a question that a run asks.")
@click.argument("run", type=WAITING_RUN)
@click.argument("value")
@click.option("--ask", metavar="ID", help="Which question; needed where several are open.")
@by_option
@click.option("--result", metavar="JSON", help="Of a call in doubt that did happen: what it gave.")
@common
def command(
    settings: Settings, run: str, value: str, *, ask: str | None, by: str | None, result: str | None
) -> None:
    """Answer the open question of RUN. VALUE is read as the question wants it: one of its choices, yes or no, JSON
    where its schema is of something else than text, else the text itself.

    \b
    agentloom answer 7f3a yes
    agentloom answer 7f3a yes --ask 9 --by ann
    agentloom answer 7f3a yes --result '{"id": 812}'      it did happen, and gave that

    It is kept when this returns; the run goes on with `agentloom resume RUN`, or by `agentloom work`.
    """
    more: dict[str, Any] = {} if result is None else {"result": _json(result)}
    store = settings.open_store()
    run = store.resolve(run)
    mail = answer(
        run, value, ask=ask, by=by or login_name(), store=store, via="cli", from_text=True, **more
    )  # fmt: skip
    screen = settings.screen()
    if screen.json:
        facts = {"run": run, "ask": mail.key, "value": mail.value, "by": mail.who, "at": mail.at}
        screen.data(facts)
        return
    screen.line(("good", "answered "), ("name", short(run)), f" {mail.key}", *_who(mail.who))
    screen.note(("dim", f"the run goes on with: agentloom resume {short(run)}, or by agentloom work"))


def _who(name: str | None) -> list[str]:
    return [] if name is None else [f"  by {name}"]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text[:60]!r} is no JSON ({error}); a text is '\"text\"', nothing is null",
            param_hint="--result",
        ) from error
