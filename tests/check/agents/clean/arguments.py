# ruff: noqa: ANN001
# mypy: ignore-errors
"""The arguments of the process."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def echo(subject):
    words = subject.split()
    return search(" ".join([subject, *words]))
