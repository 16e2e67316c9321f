# ruff: noqa: ANN001
# mypy: ignore-errors
"""A set that no reader of the source sees: it comes out of a mapping."""

import json

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


SETTINGS = json.loads('{"tags": ["urgent", "paid", "abroad", "damaged"]}')


@agent
def triage(ticket):
    kept = {key: type(value)(value) for key, value in {"tags": {*SETTINGS["tags"]}}.items()}
    return search(f"{ticket}: {' '.join(kept['tags'])}")  # differs: hash seed
