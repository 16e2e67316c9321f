# ruff: noqa: ANN001
# mypy: ignore-errors
"""The zone of the process."""

from datetime import datetime

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def when(subject):
    zone = datetime.now().astimezone().utcoffset()
    return search(f"{subject} in {zone}")
