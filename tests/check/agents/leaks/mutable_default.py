# ruff: noqa: ANN001, B006
# mypy: ignore-errors
"""A default argument that grows."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


def remember(word, seen=[]):  # leak: mutable-default
    assert word
    seen.append(word)
    return " ".join(seen)


@agent
def chat(word):
    return search(remember(word))
