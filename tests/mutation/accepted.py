"""Survivors that are accepted, each with a written reason: ``accepted.toml``.

An entry names a function and the lines that go and come, never a number, so that it outlives edits elsewhere.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

from tests.mutation.changes import Mutant

__all__ = ["FILE", "as_toml", "read"]

FILE = Path(__file__).with_name("accepted.toml")


def read(text: str) -> dict[tuple[str, str], str]:
    """Function and change to reason. Raises ``ValueError`` for an entry without a reason, or given twice."""
    reasons: dict[tuple[str, str], str] = {}
    for entry in tomllib.loads(text).get("accepted", []):
        reason = entry["reason"].strip()
        if len(reason.split()) < 3:
            raise ValueError(f"{entry['function']}: write a reason, not {reason!r}")
        for change in entry["changes"]:
            if (entry["function"], change) in reasons:
                raise ValueError(f"{entry['function']}: {change!r} is accepted twice")
            reasons[entry["function"], change] = reason
    return reasons


def as_toml(mutants: Iterable[Mutant]) -> str:
    """Entries to be put into the file once their reasons are written: one for each function."""
    changes: dict[str, list[str]] = {}
    for mutant in mutants:
        changes.setdefault(mutant.function, []).append(mutant.change)
    parts: list[str] = []
    for function, lines in changes.items():
        listed = "".join(f"  {json.dumps(change, ensure_ascii=False)},\n" for change in dict.fromkeys(lines))
        parts.append(f'[[accepted]]\nfunction = "{function}"\nreason = ""\nchanges = [\n{listed}]\n')
    return "\n".join(parts)
