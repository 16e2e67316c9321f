# ruff: noqa: ANN001
# mypy: ignore-errors
"""A generator that the module made."""

import random

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def pick(names):
    dice = random.Random()
    return search(dice.choice(names.split()))
