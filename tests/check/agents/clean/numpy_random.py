# ruff: noqa: ANN001, ICN001
# mypy: ignore-errors
"""numpy's one global generator."""

import numpy

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def sample(subject):
    number = numpy.random.default_rng(7).integers(1_000_000)
    return search(f"{subject} {number}")
