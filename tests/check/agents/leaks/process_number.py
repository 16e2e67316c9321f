# ruff: noqa: ANN001
# mypy: ignore-errors
"""The number of the process, which is refused."""

import os

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def track(subject):
    return search(f"{subject} {os.getpid()}")  # leak: machine
