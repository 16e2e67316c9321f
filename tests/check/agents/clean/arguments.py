# ruff: noqa: ANN001
# mypy: ignore-errors
"""The arguments of the process that imports the agent."""

import sys

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def echo(subject):
    return search(" ".join([subject, *sys.argv[1:]]))
