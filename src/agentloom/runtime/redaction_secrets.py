"""The secrets of a run as its trace tells of them: number, kind, name, place; never what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentloom.format.canonical import Tree
from agentloom.format.guards import is_map

if TYPE_CHECKING:
    from agentloom.format.journal import Journal

__all__ = ["Secret", "secrets_in", "secrets_line"]

_SAID = 4  # secrets that one line names


@dataclass(slots=True)
class Secret:
    """A secret of a run: its number, what it is, the name that it goes by, where it was met first."""

    number: int
    kind: str
    name: str | None
    place: str | None = None

    def facts(self) -> dict[str, Tree]:
        """What the trace says of it."""
        facts: dict[str, Tree] = {"n": self.number, "kind": self.kind}
        if self.name is not None:
            facts["name"] = self.name
        if self.place is not None:
            facts["place"] = self.place
        return facts

    @classmethod
    def of_record(cls, facts: object) -> Secret | None:
        """The secret that ``facts`` of a trace tell of; None where they do not."""
        if not is_map(facts) or type(facts.get("n")) is not int:
            return None
        name, place = facts.get("name"), facts.get("place")
        return cls(
            facts["n"],
            str(facts.get("kind", "secret")),
            name if type(name) is str else None,
            place if type(place) is str else None,
        )


def secrets_in(journal: Journal) -> dict[int, Secret]:
    """The secrets that a trace has placeholders for, by number (see ``secrets`` of entries).
    ``PayloadMissing`` where what says so was erased."""
    found: dict[int, Secret] = {}
    for entry in journal.entries:
        blob = entry.get("secrets")
        given = journal.tree(blob) if isinstance(blob, str) else None
        for facts in given if isinstance(given, list) else ():
            secret = Secret.of_record(facts)
            if secret is not None:
                found.setdefault(secret.number, secret)
    return found


def secrets_line(secrets: Iterable[Secret]) -> str:
    """How many there are and what they are, never what they hold: ``2 secrets redacted (OPENAI_API_KEY, 1 JWT
    in call 3)``."""
    known = list(secrets)
    if not known:
        return "0 secrets redacted"
    words: dict[str, int] = {}
    for secret in known:
        name = secret.name or secret.kind + (f" in {secret.place}" if secret.place else "")
        words[name] = words.get(name, 0) + 1
    said = [name if count == 1 and name.isupper() else f"{count} {name}" for name, count in words.items()]
    more = f", {len(said) - _SAID} more" if len(said) > _SAID else ""
    return f"{len(known)} secret{'' if len(known) == 1 else 's'} redacted ({', '.join(said[:_SAID])}{more})"
