"""Why a replay diverged: changed code ranked by its bearing on the value, drift of packages, or a leak.

A rank is a heuristic and never hides a change: causes are listed with the likeliest first, and how many more there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentloom.format.values import Tree
from agentloom.replay.bearings import Bearings, bearings
from agentloom.replay.code import CodeChange, ModuleSource, code_changes
from agentloom.replay.fields import Difference
from agentloom.replay.leaks import Leak, classify
from agentloom.replay.text import show

__all__ = ["Cause", "CodeFacts", "Drift", "Site", "drift", "find_cause", "parse_src"]

_RELEVANT = 10
"""The score from which a change is said to bear on the difference."""
_TOUCHES = 40
"""The score of a changed literal that explains a changed span; nothing else comes near it."""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What a run says about its code: module sources, commit, packages, interpreter.

    ``modules`` maps a module's name to its source; ``revision`` is a short name of the state (``a1f9c2e``,
    ``working tree``) or empty. ``packages`` maps a distribution to its version.
    """

    modules: Mapping[str, ModuleSource] = field(default_factory=dict[str, ModuleSource])
    revision: str = ""
    packages: Mapping[str, str] = field(default_factory=dict[str, str])
    interpreter: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Drift:
    """A package or interpreter fact that differs; an absent one is None."""

    name: str
    recorded: str | None
    now: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.recorded or '(absent)'} -> {self.now or '(absent)'}"

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON."""
        return {"name": self.name, "recorded": self.recorded, "now": self.now}


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the code, parsed from ``file:line function``."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def parse_src(src: str | None) -> Site | None:
    """``"agent.py:61 build"`` -> its parts; None for ``?`` and the empty text."""
    place, _, function = (src or "").partition(" ")
    file, _, line = place.rpartition(":")
    return Site(file, int(line), function) if file and line.isdigit() else None


@dataclass(frozen=True, slots=True)
class Cause:
    """The probable cause. ``kind``: ``code``, ``packages``, ``leak`` or ``unknown``.

    ``changes`` come in order of bearing; ``leak`` says what the value looks like; ``earlier`` is the call whose
    recorded outcome holds the value that is asked for now, where there is one.
    """

    kind: str
    changes: tuple[CodeChange, ...] = ()
    drift: tuple[Drift, ...] = ()
    leak: Leak | None = None
    leak_path: str | None = None
    earlier: str | None = None
    revisions: str = ""
    relevant: bool = False

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON; at most 20 code changes and 50 drifts."""
        return {
            "kind": self.kind,
            "relevant": self.relevant,
            "revisions": self.revisions or None,
            "changes": [change.to_json() for change in self.changes[:20]],
            "change_count": len(self.changes),
            "drift": [item.to_json() for item in self.drift[:50]],
            "leak": self.leak.to_json() if self.leak else None,
            "leak_path": self.leak_path,
            "earlier_outcome": self.earlier,
        }


def drift(recorded: CodeFacts, now: CodeFacts) -> list[Drift]:
    """Packages and interpreter facts that both runs name and that differ, and packages that are gone."""
    out: list[Drift] = []
    for was, has, both in (
        (recorded.interpreter, now.interpreter, True),
        (recorded.packages, now.packages, False),
    ):
        if was == has:  # most often, and there are hundreds
            continue
        for name, version in was.items():
            if has.get(name) != version and (name in has or not both):
                out.append(Drift(name, version, has.get(name)))
    return out


def find_cause(
    recorded: CodeFacts,
    now: CodeFacts,
    differences: Sequence[Difference],
    site: Site | None = None,
    earlier: str | None = None,
) -> Cause:
    """The probable cause of ``differences`` at ``site``: code first, then packages, then a leak."""
    changes = code_changes(recorded.modules, now.modules)
    drifted = tuple(drift(recorded, now))
    if changes:
        scores = _scores(changes, now, differences, site)
        order = sorted(range(len(changes)), key=lambda n: (-scores[n], n))
        revisions = _revisions(recorded, now)
        ranked = tuple(changes[n] for n in order)
        best = scores[order[0]]
        leak, path = _leak(differences) if best < _TOUCHES else (None, None)
        if leak is not None and (leak.guess or leak.kind in ("set order", "key order")):
            leak, path = None, None  # an edit explains it as well
        return Cause(
            "code",
            ranked,
            drifted,
            revisions=revisions,
            relevant=best >= _RELEVANT,
            leak=leak,
            leak_path=path,
        )
    leak, path = _leak(differences)
    if drifted and not (leak and not leak.guess):
        return Cause("packages", (), drifted, leak, path, earlier)
    if leak is not None:
        return Cause("leak", (), drifted, leak, path, earlier, relevant=not leak.guess)
    return Cause("unknown", earlier=earlier)


def _revisions(recorded: CodeFacts, now: CodeFacts) -> str:
    if not recorded.revision:
        return ""
    committed = now.revision and now.revision != recorded.revision
    return f"{recorded.revision}..{now.revision if committed else 'working tree'}"


def _leak(differences: Sequence[Difference]) -> tuple[Leak | None, str | None]:
    """The first difference that a detector explains for certain, else the first guess."""
    guess: tuple[Leak | None, str | None] = (None, None)
    for difference in differences[:20]:
        if difference.kind not in ("changed", "order"):
            continue
        found = classify(difference.recorded, difference.now)
        if found is not None and not found.guess:
            return found, difference.path
        if found is not None and guess[0] is None:
            guess = (found, difference.path)
    return guess


def _scores(
    changes: Sequence[CodeChange], now: CodeFacts, differences: Sequence[Difference], site: Site | None
) -> list[int]:
    near = bearings(now.modules, site.file, site.line, site.function) if site else None
    return [_score(change, differences, site, near) for change in changes]


def _score(
    change: CodeChange, differences: Sequence[Difference], site: Site | None, near: Bearings | None
) -> int:
    score = {"docstring": -15, "import": -6, "module": -4}.get(change.kind, 0)
    for difference in differences[:8]:
        for old, new, old_full, new_full in _texts(difference):
            score += _TOUCHES * _touches(change.literals_recorded, old, old_full, new_full)
            score += _TOUCHES * _touches(change.literals, new, new_full, old_full)
    name = change.name.rpartition(".")[2]
    if site is None or near is None:
        return score
    if change.file == site.file:
        score += 3
        if name == site.function:
            score += 20
    if name in near.below:
        score += max(4, 14 - 3 * near.below[name])
    elif name in near.above or (change.kind == "statement" and change.names & near.leading):
        score += max(_RELEVANT, 13 - near.above.get(name, 0))
    elif name in near.beside:
        score += _RELEVANT
    return score


def _texts(difference: Difference) -> list[tuple[str, str, str, str]]:
    """``(changed part recorded, changed part now, whole recorded, whole now)`` of a difference."""
    if difference.hunks and isinstance(difference.recorded, str) and isinstance(difference.now, str):
        whole = (difference.recorded, difference.now)
        return [(hunk.old, hunk.new, *whole) for hunk in difference.hunks]
    old = difference.recorded if isinstance(difference.recorded, str) else show(difference.recorded, 400)
    new = difference.now if isinstance(difference.now, str) else show(difference.now, 400)
    return [(old, new, old, new)]


_FIELD = re.compile(r"\{[^{}\n]*\}")


def _template(literal: str) -> list[str]:
    """``Answer {input}!`` as a template makes it appear in a value: the texts around its fields."""
    return [part.strip() for part in _FIELD.split(literal)]


def _touches(literals: frozenset[str], span: str, own: str, other: str) -> bool:
    """Whether a literal that only one version has explains the span that only that version's value has."""
    span = span.strip()
    for literal in literals:
        text = literal.strip()
        if span and (span == text or (len(span) >= 4 and span in text)):
            return True
        if any(len(part) >= 3 and part in own and part not in other for part in (text, *_template(text))):
            return True
    return False
