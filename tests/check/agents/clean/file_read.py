# ruff: noqa: ANN001
# mypy: ignore-errors
"""A prompt read outside of a tool."""

import os

from agentloom import agent, allow, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def greet(name):
    with allow("file.read", reason="a template"):
        return search(name + open(os.devnull).read())
