# ruff: noqa: ANN001
# mypy: ignore-errors
"""The zone of the process, by a name that was imported."""

import time

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def when(subject):
    zone = time.tzname[0]
    return search(f"{subject} in {zone}")
