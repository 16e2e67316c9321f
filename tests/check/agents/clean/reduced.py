# ruff: noqa: ANN001
# mypy: ignore-errors
"""A set, put together one by one."""

import functools

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = set(text.split())
    longest = functools.reduce(lambda so_far, word: max(so_far, len(word)), words, 0)
    return search(f"{longest} " + functools.reduce(lambda so_far, word: f"{so_far}, {word}", sorted(words)))
