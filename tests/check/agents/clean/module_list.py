# ruff: noqa: ANN001
# mypy: ignore-errors
"""A list of the module that grows."""

from agentloom import agent, tool

SEEN = []


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def chat(word):
    seen = [*SEEN]
    seen.append(word)
    return search(" ".join(seen))
