# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo around a tool, in one expression."""

from agentloom import agent, tool

KNOWN = {}


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def answer(query):
    return KNOWN.setdefault(query, search(query))  # leak: cache
