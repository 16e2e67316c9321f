# ruff: noqa: ANN001
# mypy: ignore-errors
"""Fields that a form lacks, by set operators on keys."""

import json

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def complete(form):
    required = {"name": 1, "street": 2, "town": 3, "country": 4}
    missing = [field for field in required if field not in form]
    return search(json.dumps(missing))
