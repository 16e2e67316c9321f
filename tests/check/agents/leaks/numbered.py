# ruff: noqa: ANN001, F841
# mypy: ignore-errors
"""Numbers that go on from run to run."""

import itertools

from agentloom import agent, tool

IDS = itertools.count(1)


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def open_ticket(title):
    ids = itertools.count(1)
    return search(f"{next(IDS)}: {title}")  # leak: counter
    # {}: {title}")
