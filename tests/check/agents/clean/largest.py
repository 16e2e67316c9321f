# ruff: noqa: ANN001
# mypy: ignore-errors
"""The longest words, where some are as long as others."""

import heapq

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    words = set(text.split())
    return search(" ".join(heapq.nlargest(2, words)) + " ".join(heapq.nsmallest(2, sorted(words), key=len)))
