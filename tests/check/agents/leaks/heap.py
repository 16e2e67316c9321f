# ruff: noqa: ANN001
# mypy: ignore-errors
"""The inside of a heap that a set filled."""

import heapq

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def ask(text):
    heap = list(set(text.split()))  # leak: set-order
    heapq.heapify(heap)
    return search(" ".join(heap))
