# ruff: noqa: ANN001
# mypy: ignore-errors
"""A generator with a seed that goes on from run to run."""

import random

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def pick(names):
    dice = random.Random(7)
    return search(dice.choice(names.split()))
