# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo that hangs on a function."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


def find(query):
    if query not in find.known:
        find.known[query] = search(query)  # leak: cache
    return find.known[query]


find.known = {}


@agent
def answer(query):
    return find(query)
