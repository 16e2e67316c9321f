"""Small traces that hold one payload in each note."""

from __future__ import annotations

from typing import Any

from agentloom.format.journal import Journal, check
from spec.vector_maker import Maker


def maker() -> Maker:
    return Maker("tests").start()


def journal(made: Maker) -> Journal:
    data = made.data if b'"kind":"end"' in made.data else made.end().data
    verdict = check(data)
    assert verdict.ok, verdict.message
    assert verdict.unreferenced == []
    return Journal.parse(data)


def hold(made: Maker, tree: Any, series: str | None = None) -> str:
    blob = made.put(tree, series)
    made.entry("note", val=blob)
    return blob
