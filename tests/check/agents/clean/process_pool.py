# ruff: noqa: ANN001
# mypy: ignore-errors
"""Processes of its own."""

from concurrent.futures import ThreadPoolExecutor

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def lengths(text):
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(len, text.split()))
    return search(str(found))
