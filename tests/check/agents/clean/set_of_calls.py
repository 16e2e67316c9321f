# ruff: noqa: ANN001, PERF401
# mypy: ignore-errors
"""One search for each word."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def look_up(text):
    found = []
    for word in sorted(set(text.split())):
        found.append(search(word))
    return sorted(found)
