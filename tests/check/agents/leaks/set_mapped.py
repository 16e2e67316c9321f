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
    return search(
        ", ".join(list(map(str.title, words)))  # leak: set-order
    )
