# ruff: noqa: ANN001, ANN204
# mypy: ignore-errors
"""An error that shows an object."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Route:
    def __init__(self, name):
        self.name = name


@agent
def choose(name):
    route = Route(name)
    if name != "north":
        raise ValueError(
            f"no such route: {route}"  # leak: address
        )
    return search(name)
