# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo that belongs to a class."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Finder:
    known = {}  # noqa: RUF012

    def find(self, query):
        if query not in Finder.known:
            Finder.known[query] = search(query)  # leak: cache
        return Finder.known[query]


@agent
def answer(query):
    return Finder().find(query)
