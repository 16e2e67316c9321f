# ruff: noqa: ANN001, PERF401
# mypy: ignore-errors
"""A message for each fact."""

from agentloom import agent
from agentloom.sync import model


@agent
def answer(question, facts):
    messages = [{"role": "user", "content": question}]
    known = frozenset(facts)
    for fact in sorted(known):
        messages.append({"role": "user", "content": fact})
    return model("gpt-4o-2024-08-06", messages).text
