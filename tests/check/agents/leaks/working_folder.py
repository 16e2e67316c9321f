# ruff: noqa: ANN001
# mypy: ignore-errors
"""The working folder, asked for at import."""

import os

from agentloom import agent, tool

HERE = os.getcwd()  # leak: folder


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def explain(subject):
    return search(f"{subject} in {HERE}")
