# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo that hangs on a function."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


def find(query, known):
    if query not in known:
        known[query] = search(query)
    return known[query]


@agent
def answer(query):
    return find(query, {})
