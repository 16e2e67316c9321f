# ruff: noqa: ANN001
# mypy: ignore-errors
"""A generator that the module made."""

import random

from agentloom import agent, tool

DICE = random.Random()  # leak: import-time


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def pick(names):
    return search(DICE.choice(names.split()))
