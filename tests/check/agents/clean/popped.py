# ruff: noqa: ANN001
# mypy: ignore-errors
"""Any of a set."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = sorted(set(text.split()))
    return search(words.pop())
