# ruff: noqa: ANN001, DTZ005, RUF009
# mypy: ignore-errors
"""A field whose default is a time."""

import dataclasses
from datetime import datetime

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


@dataclasses.dataclass
class Note:
    text: str
    at: datetime = datetime.now()  # leak: import-time


@agent
def brief(subject):
    note = Note(subject)
    return search(f"{note.text} of {note.at:%d %B}")
