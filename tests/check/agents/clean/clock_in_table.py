# ruff: noqa: ANN001, PLW0108
# mypy: ignore-errors
"""Clocks in a table."""

import time

from agentloom import agent, tool

CLOCKS = {"wall": lambda: time.time()}


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def stamp(subject):
    return search(f"{subject} {CLOCKS['wall']()}")
