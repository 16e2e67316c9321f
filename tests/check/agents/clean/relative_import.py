# ruff: noqa: ANN001
# mypy: ignore-errors
"""A module that is found by the working folder."""

import os
import sys

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


HERE = sorted(name for name in sys.path if name == os.getcwd())


@agent
def triage(ticket):
    return search(f"{ticket} {len(HERE) >= 0}")
