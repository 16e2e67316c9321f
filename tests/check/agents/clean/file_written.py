# ruff: noqa: ANN001
# mypy: ignore-errors
"""A note written outside of a tool."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@tool
def save(text):
    with open("note.txt", "w") as file:
        file.write(text)


@agent
def note(text):
    save(text)
    return search(text)
