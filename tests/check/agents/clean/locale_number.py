# ruff: noqa: ANN001
# mypy: ignore-errors
"""A number by the locale of the process."""

from agentloom import agent, tool

LANGUAGE = "C"


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def price(amount):
    return search(f"{amount} in {LANGUAGE}")
