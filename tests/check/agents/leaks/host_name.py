# ruff: noqa: ANN001
# mypy: ignore-errors
"""The host's name, asked for at import."""

import platform

from agentloom import agent, tool

HOST = platform.node()  # leak: machine


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def sign(subject):
    return search(f"{subject} from {HOST}")
