# ruff: noqa: ANN001
# mypy: ignore-errors
"""The host's name in a request."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def sign(subject):
    host = "the service"
    return search(f"{subject} from {host}")
