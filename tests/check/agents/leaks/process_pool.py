# ruff: noqa: ANN001
# mypy: ignore-errors
"""Processes of its own."""

from concurrent.futures import ProcessPoolExecutor

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def lengths(text):
    with ProcessPoolExecutor() as pool:  # leak: unrecorded-effect
        found = list(pool.map(len, text.split()))
    return search(str(found))
