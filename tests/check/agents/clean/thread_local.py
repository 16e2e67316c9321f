# ruff: noqa: ANN001
# mypy: ignore-errors
"""What a thread keeps from run to run."""

import threading

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def greet(name):
    kept = threading.local()
    before = getattr(kept, "name", "nobody")
    kept.name = name
    return search(f"{name} after {before}")
