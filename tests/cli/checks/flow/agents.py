"""Agents as text for the tests of the data flow."""

from __future__ import annotations

import ast
import textwrap

from agentloom.cli.checks.findings import Finding, Source
from agentloom.cli.checks.static import found_in

HEAD = """\
import agentloom
from agentloom import agent, allow, tool
from agentloom.sync import model

@tool
def search(query): return query
"""
"""Six lines: what is written below begins in line 7."""
FIRST = 7


def source(text: str, name: str = "agent.py") -> Source:
    return Source(f"/nowhere/{name}", name, ast.parse(text), text=text)


def findings(text: str, **others: str) -> list[Finding]:
    """The findings of a file and of others that it imports, by their names."""
    beside = [source(textwrap.dedent(one), f"{name}.py") for name, one in others.items()]
    return found_in([source(textwrap.dedent(text)), *beside])


def of_agent(body: str, *, before: str = "") -> list[tuple[int, str]]:
    """Line (of the body, from 1) and name of the findings in an agent ``run(given)``."""
    head = HEAD + textwrap.dedent(before).strip("\n") + "\n@agent\ndef run(given, tags: set[str]):\n"
    text = head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    return [(one.line - head.count("\n"), one.check) for one in findings(text)]


def names(body: str, *, before: str = "") -> list[str]:
    """Only the names."""
    return [name for _, name in of_agent(body, before=before)]


def of_script(text: str) -> list[tuple[int, str]]:
    """Line and name of the findings in a script."""
    return [(one.line, one.check) for one in findings(text)]
