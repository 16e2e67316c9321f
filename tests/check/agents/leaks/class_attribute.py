# ruff: noqa: ANN001
# mypy: ignore-errors
"""An attribute of a class, set in a run."""

from agentloom import agent, tool


@tool(effect="read")
def search(query):
    return query.upper()


class Session:
    last = "nothing"

    def ask(self, query):
        before = self.last
        Session.last = query  # leak: global-state
        return search(f"{query} after {before}")


@agent
def answer(query):
    return Session().ask(query)
