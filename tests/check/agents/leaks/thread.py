# ruff: noqa: ANN001
# mypy: ignore-errors
"""A thread of its own."""

import threading

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def both(first, second):
    threading.Thread(target=print, args=(first,)).start()  # leak: thread
    return search(first + second)
