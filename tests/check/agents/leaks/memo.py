# ruff: noqa: ANN001, F841
# mypy: ignore-errors
"""A memo in front of a tool."""

from agentloom import agent, tool

KNOWN = {}


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def answer(query):
    answers = []
    if query not in KNOWN:
        KNOWN[query] = search(query)  # leak: cache
    return KNOWN[query]
