# ruff: noqa: ANN001
# mypy: ignore-errors
"""A setting from the environment, read at import."""

import os

from agentloom import agent, tool

TONE = "CHECK_TONE"


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def tell(subject):
    return search(f"{subject} in a {os.environ.get(TONE, 'friendly')} tone")
