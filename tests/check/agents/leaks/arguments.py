# ruff: noqa: ANN001
# mypy: ignore-errors
"""The arguments of the process that imports the agent."""

import sys

from agentloom import agent, tool

WORDS = sys.argv[1:]  # leak: arguments


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def echo(subject):
    return search(" ".join([subject, *WORDS]))
