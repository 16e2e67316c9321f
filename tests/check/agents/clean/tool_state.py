# ruff: noqa: ANN001, F841
# mypy: ignore-errors
"""A tool that leaves its result in a variable."""

from agentloom import agent, tool

FOUND = []


@tool(effect="read")
def search(query):
    found = [*FOUND, query]
    return [query]


@agent
def collect(query):
    found = search(query)
    return " ".join(found)
