"""A finding, a file that is looked at, and what a check is.

A rule that needs one file alone is a module with a function of the form `Check`, and its line in
``agentloom.cli.checks.static.CHECKS``; what follows values is in ``flow``. Every name is in ``catalogue.RULES``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

__all__ = ["Check", "Finding", "Level", "Source"]

Level = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the target. ``shown``: its path as messages name it. ``problem``: why it could not be read; its
    ``tree`` is empty then. ``text``: its source."""

    path: str
    shown: str
    tree: ast.Module
    problem: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about one place. ``check``: the kind of finding; ``subject``: what it is about.

    A ``warning`` fails the command; a ``note`` is there to be read. ``line`` and ``column`` count from 1; 0 where the
    place is no line of code. ``function``: the qualified name of the function that the place is in; "" for none.
    """

    check: str
    level: Level
    file: str
    line: int
    column: int
    subject: str
    said: str
    reason: str
    fix: str = ""
    function: str = ""

    def to_json(self) -> dict[str, object]:
        """The fields as plain JSON."""
        return asdict(self)


Check = Callable[[Source], Iterable[Finding]]
"""What a check does: from one file to its findings, in the order of the lines."""
