# ruff: noqa: ANN001
# mypy: ignore-errors
"""A setting from the environment, read at import."""

import os

from agentloom import agent, tool

TONE = os.environ.get("CHECK_TONE", "friendly")  # leak: environment


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def tell(subject):
    return search(f"{subject} in a {TONE} tone")
