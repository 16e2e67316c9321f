# ruff: noqa: ANN001
# mypy: ignore-errors
"""A cache in front of a tool."""

import functools

from agentloom import agent, tool


@functools.lru_cache  # leak: cache
@tool(effect="read")
def rate(currency):
    return f"1.07 {currency}"


@agent
def convert(currency):
    return rate(currency)
