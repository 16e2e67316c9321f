# ruff: noqa: ANN001, ICN001, NPY002
# mypy: ignore-errors
"""numpy's one global generator."""

import numpy

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def sample(subject):
    number = numpy.random.randint(1_000_000)  # leak: unseen-random
    return search(f"{subject} {number}")
