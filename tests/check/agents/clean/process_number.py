# ruff: noqa: ANN001
# mypy: ignore-errors
"""The number of the process, which is refused."""

import os

from agentloom import agent, allow, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def track(subject):
    with allow("id", reason="a log line"):
        number = os.getpid()
    return search(f"{subject} {number > 0}")
