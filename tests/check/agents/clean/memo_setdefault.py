# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo around a tool, in one expression."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def answer(query):
    known = {}
    return known.setdefault(query, search(query))
