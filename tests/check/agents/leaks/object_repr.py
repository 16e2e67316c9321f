# ruff: noqa: ANN001, ANN204
# mypy: ignore-errors
"""A customer without a __repr__, in a prompt."""

from agentloom import agent
from agentloom.sync import model


class Customer:
    def __init__(self, name):
        self.name = name


@agent
def welcome(name):
    customer = Customer(name)
    return model(
        "gpt-4o-2024-08-06",
        f"Welcome {customer}",  # leak: address
    ).text
