"""Survivors that are accepted, each with a written reason: ``accepted.toml``.

An entry names a function and the lines that go and come, never a number, so that it outlives edits elsewhere. With
``pattern``, a regular expression that fits the lines, it stands for a kind of change; ``function`` may hold ``*`` then.
"""

from __future__ import annotations

import ast
import fnmatch
import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.changes import Mutant

__all__ = ["FILE", "Kind", "as_toml", "gone", "kinds", "left", "read", "unused"]

FILE = Path(__file__).with_name("accepted.toml")


def read(text: str) -> dict[tuple[str, str], str]:
    """Function and change to reason. Raises ``ValueError`` for an entry without a reason, or given twice."""
    reasons: dict[tuple[str, str], str] = {}
    for entry in tomllib.loads(text).get("accepted", []):
        reason = _reason(entry)
        for change in entry.get("changes", []):
            if (entry["function"], change) in reasons:
                raise ValueError(f"{entry['function']}: {change!r} is accepted twice")
            reasons[entry["function"], change] = reason
    return reasons


def kinds(text: str) -> list[Kind]:
    """The kinds of changes that are accepted. Raises ``ValueError`` for an entry without a reason."""
    entries = tomllib.loads(text).get("accepted", [])
    return [
        Kind(entry["function"], re.compile(entry["pattern"], re.DOTALL), _reason(entry))
        for entry in entries if "pattern" in entry
    ]  # fmt: skip


def left(mutants: Iterable[Mutant], text: str) -> list[Mutant]:
    """The mutants that no entry accepts."""
    reasons, accepted = read(text), kinds(text)
    return [
        mutant
        for mutant in mutants
        if (mutant.function, mutant.change) not in reasons and not any(kind.fits(mutant) for kind in accepted)
    ]


def unused(mutants: Iterable[Mutant], alive: Iterable[Mutant], text: str) -> list[str]:
    """What is accepted of functions that ``mutants`` change, and fits none that is ``alive``: a test finds it by now,
    or the code is another."""
    functions = {mutant.function for mutant in mutants}
    living = list(alive)
    changes = {(mutant.function, mutant.change) for mutant in living}
    found = [f"{function}: {change}" for function, change in read(text)
             if function in functions and (function, change) not in changes]  # fmt: skip
    return found + [
        str(kind) for kind in kinds(text)
        if fnmatch.filter(functions, kind.functions) and not any(kind.fits(mutant) for mutant in living)
    ]  # fmt: skip


def gone(text: str, source: Path) -> list[str]:
    """What is accepted of code that is not there: no function of that name below ``source`` (the folder of the
    package), or one without the lines that go. It looks at the code as it stands, and makes no mutant."""
    reasons, accepted = read(text), kinds(text)
    names = [function for function, _ in reasons] + [kind.functions for kind in accepted]
    bodies = _functions(source, {tuple(name.split(".")[:2]) for name in names})
    found: list[str] = []
    for function, change in reasons:
        going = {line[2:] for line in change.splitlines() if line.startswith("- ")}
        if not going <= bodies.get(function, set()):
            found.append(f"{function}: {change}")
    return found + [str(kind) for kind in accepted if not fnmatch.filter(bodies, kind.functions)]


def _functions(source: Path, modules: Iterable[tuple[str, ...]]) -> dict[str, set[str]]:
    """The functions and methods of modules, as mutants name them, each with its lines without layout."""
    found: dict[str, set[str]] = {}
    for room, module in modules:
        path = source / room / f"{module}.py"
        tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for owner, body in [("", tree.body), *((f"{node.name}.", node.body) for node in classes)]:
            for node in body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = {line.strip() for line in ast.unparse(node).splitlines()}
                    found[f"{room}.{module}.{owner}{node.name}"] = lines
    return found


@dataclass(frozen=True)
class Kind:
    """A kind of change in some functions, and why it is accepted."""

    functions: str
    pattern: re.Pattern[str]
    reason: str

    def __str__(self) -> str:
        return f"{self.functions}: {self.pattern.pattern}"

    def fits(self, mutant: Mutant) -> bool:
        """Whether the whole change of a mutant is of this kind."""
        within = fnmatch.fnmatchcase(mutant.function, self.functions)
        return within and self.pattern.fullmatch(mutant.change) is not None


def _reason(entry: dict[str, str]) -> str:
    reason = entry["reason"].strip()
    if len(reason.split()) < 3:
        raise ValueError(f"{entry['function']}: write a reason, not {reason!r}")
    return reason


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
