# ruff: noqa: ANN001
# mypy: ignore-errors
"""A generator with a seed that goes on from run to run."""

import random

from agentloom import agent, tool

DICE = random.Random(7)


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def pick(names):
    return search(DICE.choice(names.split()))  # leak: counter
