# ruff: noqa: ANN001
# mypy: ignore-errors
"""A ticket's tags, joined."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def triage(ticket):
    tags = {word for word in ticket.split() if word.isalpha()}
    return search(
        ", ".join(tags)  # leak: set-order
    )
