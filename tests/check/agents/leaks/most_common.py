# ruff: noqa: ANN001
# mypy: ignore-errors
"""The word that is most frequent, where two may be."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def topic(text):
    words = text.split()
    return search(
        max(set(words), key=words.count)  # leak: set-order
    )
