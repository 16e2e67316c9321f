# ruff: noqa: ANN001
# mypy: ignore-errors
"""What a thread keeps from run to run."""

import threading

from agentloom import agent, tool

KEPT = threading.local()


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def greet(name):
    before = getattr(KEPT, "name", "nobody")
    KEPT.name = name  # leak: global-state
    return search(f"{name} after {before}")
