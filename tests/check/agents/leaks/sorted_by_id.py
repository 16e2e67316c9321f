# ruff: noqa: ANN001
# mypy: ignore-errors
"""Sorted by what differs in each process."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = text.split()
    return search(
        " ".join(sorted(words, key=hash))  # leak: hash
    )
