# ruff: noqa: ANN001
# mypy: ignore-errors
"""A function, mapped over a set."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = set(text.split())
    return search(", ".join(sorted(map(str.title, words))))
