# ruff: noqa: ANN001
# mypy: ignore-errors
"""The umask of the process."""

from agentloom import agent, tool

with open("/proc/self/status") as status:
    MASK = next(line for line in status if line.startswith("Umask"))


@tool(effect="read")
def search(query):
    return query.upper()


@agent
def triage(ticket):
    return search(f"{ticket} {MASK}")  # differs: umask
