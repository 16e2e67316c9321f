# ruff: noqa: ANN001
# mypy: ignore-errors
"""A path that is relative to the working folder at import."""

import os

from agentloom import agent, tool

DEPTH = len(os.path.relpath("/", os.curdir))


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def triage(ticket):
    return search(f"{ticket} {DEPTH}")  # differs: working folder
