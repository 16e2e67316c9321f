# ruff: noqa: ANN001
# mypy: ignore-errors
"""The host's name in a request."""

import platform

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def sign(subject):
    host = platform.node()  # leak: machine
    return search(f"{subject} from {host}")
