# ruff: noqa: ANN001
# mypy: ignore-errors
"""A number by the locale of the process."""

import locale

from agentloom import agent, tool

LANGUAGE = locale.setlocale(locale.LC_ALL, "")  # leak: locale


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def price(amount):
    return search(f"{amount} in {LANGUAGE}")
