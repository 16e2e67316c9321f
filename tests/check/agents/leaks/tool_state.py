# ruff: noqa: ANN001
# mypy: ignore-errors
"""A tool that leaves its result in a variable."""

from agentloom import agent, tool

FOUND = []


@tool(effect="read")
def search(query):
    FOUND.append(query)  # leak: tool-state
    return [query]


@agent
def collect(query):
    found = search(query)
    return " ".join(FOUND + found)
