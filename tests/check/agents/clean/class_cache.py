# ruff: noqa: ANN001
# mypy: ignore-errors
"""A memo that belongs to a class."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Finder:
    def __init__(self) -> None:
        self.known = {}

    def find(self, query):
        if query not in self.known:
            self.known[query] = search(query)
        return self.known[query]


@agent
def answer(query):
    return Finder().find(query)
