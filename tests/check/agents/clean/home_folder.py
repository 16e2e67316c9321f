# ruff: noqa: ANN001
# mypy: ignore-errors
"""The home folder, by a variable in a path."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


PLACE = "~/tickets"


@agent
def triage(ticket):
    return search(f"{ticket} in {PLACE}")
