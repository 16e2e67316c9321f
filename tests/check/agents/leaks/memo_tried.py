# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo in front of a tool, asked by its error."""

from agentloom import agent, tool

KNOWN = {}


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def answer(query):
    try:
        return KNOWN[query]
    except KeyError:
        KNOWN[query] = search(query)  # leak: cache
    return KNOWN[query]
