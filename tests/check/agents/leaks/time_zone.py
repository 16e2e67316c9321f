# ruff: noqa: ANN001
# mypy: ignore-errors
"""The zone of the process, by a name that was imported."""

from time import tzname

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def when(subject):
    zone = tzname[0]  # leak: time-zone
    return search(f"{subject} in {zone}")
