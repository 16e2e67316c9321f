# ruff: noqa: ANN001, PERF401
# mypy: ignore-errors
"""Results in the order in which threads end."""

from concurrent.futures import as_completed

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def first(futures):
    results = []
    for future in as_completed(futures):  # leak: completion-order
        results.append(future.result())
    return search(results[0])
