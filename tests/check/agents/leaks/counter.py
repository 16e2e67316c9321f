# ruff: noqa: ANN001, ANN204
# mypy: ignore-errors
"""A counter that belongs to a class."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Ticket:
    count = 0

    def __init__(self, title, number):
        self.title = title
        Ticket.count += 1  # leak: counter
        self.number = Ticket.count


@agent
def open_ticket(title):
    ticket = Ticket(title, 1)
    return search(f"{ticket.number}: {ticket.title}")
