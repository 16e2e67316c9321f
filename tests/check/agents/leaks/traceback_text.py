# ruff: noqa: ANN001, F841
# mypy: ignore-errors
"""A traceback shown to the model."""

import traceback

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def explain(number):
    try:
        return search(str(1 / int(number)))
    except ZeroDivisionError as error:
        return search(traceback.format_exc())  # leak: traceback
