"""Ask before a refund is made. No model, no key: the process ends where it asks, and another one goes on.

    agentloom run refund.py:desk -- 812      exit 75: waits for somebody of finance
    agentloom inbox                          what is asked, with the call that is to be approved
    agentloom answer last yes --by ann       people.toml of the store says who is of finance
    agentloom resume last                    makes the refund, once

The shop is a file, ``shop.sqlite`` in the current folder.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from agentloom import agent, approve, ask, tool

HOURS = 3600.0
TABLES = """
create table if not exists orders (number integer primary key, total real, shipped text);
create table if not exists refunds (number integer, amount real, why text);
insert or ignore into orders values (812, 40.0, 'lost'), (813, 900.0, 'delivered');
"""


def shop() -> sqlite3.Connection:
    """The shop's database, made where it is missing."""
    connection = sqlite3.connect("shop.sqlite")
    connection.executescript(TABLES)
    return connection


@tool(effect="read")
def look_up(order: int) -> dict[str, Any]:
    """The order as the shop has it."""
    with closing(shop()) as db:
        found = db.execute("select total, shipped from orders where number = ?", (order,)).fetchone()
    if found is None:
        raise LookupError(f"there is no order {order}")
    return {"order": order, "total": found[0], "shipped": found[1]}


@tool
def refund(order: int, amount: float, why: str) -> str:
    """Give money back."""
    with closing(shop()) as db, db:
        db.execute("insert into refunds values (?, ?, ?)", (order, amount, why))
    return f"refunded order {order}: ${amount:.2f}"


def wants_reason(order: dict[str, Any]) -> bool:
    """Whether the customer has to say why."""
    return bool(order["shipped"] != "lost")


@agent
async def desk(order: int) -> str:
    """Refund an order, if somebody of finance says so."""
    found = look_up(order)
    why = "lost on the way"
    if wants_reason(found):
        why = await ask(f"Why is order {order} sent back?", evidence=found)
    grant = await approve(
        refund, order, found["total"], why,
        approver="finance", evidence=found, expires=24 * HOURS,
    )  # fmt: skip
    if not grant:
        return f"not refunded: {grant.reason or 'denied'}"
    return f"{grant(refund, order, found['total'], why)} (approved by {grant.by})"
