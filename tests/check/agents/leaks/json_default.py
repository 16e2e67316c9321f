# ruff: noqa: ANN001, ANN204
# mypy: ignore-errors
"""Anything at all, written by default=str."""

import json

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Order:
    def __init__(self, total):
        self.total = total


@agent
def report(total):
    order = Order(total)
    return search(
        json.dumps(order, default=str)  # leak: address
    )
