# ruff: noqa: ANN001
# mypy: ignore-errors
"""The umask of the process."""

import os

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def triage(ticket):
    mask = os.umask(0o022)
    return search(f"{ticket} {mask:03o}")  # differs: umask
