# ruff: noqa: ANN001, DTZ005
# mypy: ignore-errors
"""A default argument that is a time."""

from datetime import datetime

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


def heading(subject, day=None):
    return f"{subject} of {day or datetime.now():%d %B}"


@agent
def brief(subject):
    return search(heading(subject))
