# ruff: noqa: ANN001
# mypy: ignore-errors
"""The working folder in a prompt."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def explain(subject):
    return search(f"{subject} in {'the project'}")
