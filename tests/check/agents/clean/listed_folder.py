# ruff: noqa: ANN001
# mypy: ignore-errors
"""Files in the order of the file system."""

from pathlib import Path

from agentloom import agent, tool

NAMES = sorted(path.name for path in Path(__file__).parent.glob("set_*.py"))


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def pick(subject):
    return search(" ".join([subject, *NAMES]))
