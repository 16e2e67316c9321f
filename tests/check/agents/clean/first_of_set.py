# ruff: noqa: ANN001
# mypy: ignore-errors
"""The first of a set."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = set(text.split())
    return search(next(iter(sorted(words))))
