# ruff: noqa: ANN001, BLE001
# mypy: ignore-errors
"""A handler that also catches the end of the run."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def try_hard(query):
    try:
        return search(query)
    except Exception:
        return "nothing"
