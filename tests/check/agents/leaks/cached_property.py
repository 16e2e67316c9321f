# ruff: noqa: ANN001
# mypy: ignore-errors
"""A property that asks once, of an object that lives on."""

import functools

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Rates:
    @functools.cached_property  # leak: cache
    def today(self):
        return search("rates")


RATES = Rates()


@agent
def convert(amount):
    return f"{amount} at {RATES.today}"
