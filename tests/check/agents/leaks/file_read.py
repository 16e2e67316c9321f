# ruff: noqa: ANN001
# mypy: ignore-errors
"""A prompt read outside of a tool."""

import os

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def greet(name):
    with open(os.devnull) as file:  # leak: unrecorded-effect
        return search(name + file.read())
