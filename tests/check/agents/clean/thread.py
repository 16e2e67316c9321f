# ruff: noqa: ANN001
# mypy: ignore-errors
"""A thread of its own."""

from agentloom import agent, tool
from agentloom.sync import parallel


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def both(first, second):
    parallel(lambda: search(first), lambda: search(second))
    return search(first + second)
