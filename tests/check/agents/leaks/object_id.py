# ruff: noqa: ANN001
# mypy: ignore-errors
"""An object's id as a key."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def track(ticket):
    return search(
        f"ticket-{id(ticket)}"  # leak: address
    )
