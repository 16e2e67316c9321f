# ruff: noqa: ANN001, ANN002
# mypy: ignore-errors
"""A set, unpacked into the parameters of a function."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


def either(first, *others):
    return " or ".join([first, *others])


@agent
def ask(text):
    words = set(text.split())
    return search(
        either(*words)  # leak: set-order
    )
