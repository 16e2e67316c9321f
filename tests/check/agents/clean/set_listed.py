# ruff: noqa: ANN001
# mypy: ignore-errors
"""Names that two lists share, in a prompt."""

from agentloom import agent
from agentloom.sync import model


def shared(left, right):
    return set(left) & set(right)


@agent
def compare(left, right):
    names = sorted(shared(left, right))
    return model("gpt-4o-2024-08-06", f"Describe {names}").text
