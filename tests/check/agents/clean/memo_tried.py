# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo in front of a tool, asked by its error."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def answer(query):
    known = {}
    try:
        return known[query]
    except KeyError:
        known[query] = search(query)
    return known[query]
