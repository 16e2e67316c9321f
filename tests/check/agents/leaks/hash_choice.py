# ruff: noqa: ANN001
# mypy: ignore-errors
"""A variant of the prompt, chosen by the customer's hash."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def greet(customer):
    variant = hash(customer) % 2  # leak: hash
    return search(("short", "long")[variant])
