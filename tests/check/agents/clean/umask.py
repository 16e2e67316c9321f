# ruff: noqa: ANN001
# mypy: ignore-errors
"""The umask of the process."""

from agentloom import agent, tool

MASK = "0022"


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def triage(ticket):
    return search(f"{ticket} {MASK}")
