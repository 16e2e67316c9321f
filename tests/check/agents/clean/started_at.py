# ruff: noqa: ANN001
# mypy: ignore-errors
"""A time from import."""

import time

from agentloom import agent, tool

STARTED = time.time


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def report(subject):
    return search(f"{subject} at {STARTED()}")
