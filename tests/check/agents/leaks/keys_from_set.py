# ruff: noqa: ANN001
# mypy: ignore-errors
"""The keys of a mapping, from a set."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    counts = dict.fromkeys(set(text.split()), 0)  # leak: set-order
    return search(", ".join(counts))
