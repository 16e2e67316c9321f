# ruff: noqa: ANN001
# mypy: ignore-errors
"""A mapping made from a set, dumped."""

import json

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def count(text):
    words = set(text.split())
    lengths = {word: len(word) for word in sorted(words)}
    return search(json.dumps(lengths))
