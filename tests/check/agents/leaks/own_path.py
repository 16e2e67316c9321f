# ruff: noqa: ANN001
# mypy: ignore-errors
"""The path of the agent's own file in a prompt."""

from pathlib import Path

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def explain(subject):
    path = Path(__file__).parent / "rules.md"  # leak: folder
    return search(f"{subject} by {path}")
