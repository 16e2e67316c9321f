# ruff: noqa: ANN001
# mypy: ignore-errors
"""A mapping by the addresses of its members."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = text.split()
    by_place = dict(enumerate(words))
    return search(" ".join(by_place[key] for key in sorted(by_place)))
