# ruff: noqa: ANN001, B008, DTZ005
# mypy: ignore-errors
"""A default argument that is a time."""

from datetime import datetime

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


def heading(subject, day=datetime.now()):  # leak: import-time
    return f"{subject} of {day:%d %B}"


@agent
def brief(subject):
    return search(heading(subject))
