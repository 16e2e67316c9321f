# ruff: noqa: ANN001
# mypy: ignore-errors
"""The arguments of the process."""

import sys

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def echo(subject):
    words = sys.argv[1:]  # leak: arguments
    return search(" ".join([subject, *words]))
