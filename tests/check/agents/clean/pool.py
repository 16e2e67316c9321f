# ruff: noqa: ANN001, PERF401
# mypy: ignore-errors
"""Results in the order in which threads end."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def first(futures):
    results = []
    for future in futures:
        results.append(future.result())
    return search(results[0])
