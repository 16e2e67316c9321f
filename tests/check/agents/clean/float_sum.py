# ruff: noqa: ANN001
# mypy: ignore-errors
"""Prices summed as a set."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def total(orders):
    prices = {float(order) for order in orders}
    return search(str(sum(sorted(prices))))
