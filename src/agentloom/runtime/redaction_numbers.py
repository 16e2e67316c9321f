"""Which secret has which number: by first appearance in the run, and on replay as the trace has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from agentloom.format.canonical import Tree
from agentloom.format.echoes import text_of
from agentloom.format.placeholders import PLACEHOLDER, START, placeholder
from agentloom.runtime.redaction_find import Finder
from agentloom.runtime.redaction_formats import is_open_value
from agentloom.runtime.redaction_found import BEGINNING, UNSEARCHED, Known
from agentloom.runtime.redaction_layers import local_layers
from agentloom.runtime.redaction_secrets import Secret

__all__ = ["LEARNED", "Numbers", "is_telling"]

LEARNED = 256
"""Values that are looked for in every form because they were met."""
_LEARNED_BYTES = 8  # from here on: what is shorter stands in too much that is no secret
_LONG_BYTES = 24
_CODINGS = 4
_LEAD_BYTES = 12
_ARMOUR = re.compile(rb"-----[^-]*-----|\s")


class Numbers:
    """``given``: the secrets of a trace by number, on replay. ``values``: those of this machine's variables."""

    def __init__(self, finder: Finder, given: Mapping[int, Secret], values: Mapping[bytes, Known]) -> None:
        self.met: list[Secret] = []
        self.path: list[object] = []
        """Where in a payload is being looked, for reports."""
        self.place: str | None = None
        """What is being written, for reports: ``call 3``, ``input``."""
        self.on_found: Callable[[tuple[object, ...], Known], None] | None = None
        """Called for each secret found, with its path in the payload."""
        self._finder = finder
        self._given = dict(given)
        self._numbers = dict(_by_name(values, self._given))
        self._alias: dict[int, int] = {}
        self._told = 0
        self.fresh = False
        """Whether secrets were met that no entry tells of yet."""
        self._next = 1 + max(self._given, default=0)
        self._leads: dict[int, bytes] = {}
        self._begun: tuple[bytes, int] | None = None

    def replace(self, secret: bytes, known: Known) -> bytes:
        """What stands for a secret, as a ``Replace`` of a finder."""
        found, secret = secret, _plain(secret)
        number = self._numbers.get(secret)
        begun = self._begun
        if number is None and begun is not None and found.startswith(begun[0]):
            number = self._numbers[secret] = begun[1]
        if number is None:
            number = self._numbers[secret] = self._number(secret)
            if self._given.get(number) is None:
                self.met.append(Secret(number, known.kind, known.name, self.place))
                self.fresh = True
            fresh = known.kind != BEGINNING and known is not UNSEARCHED and not self._finder.knows(secret)
            if fresh and len(self._numbers) < LEARNED and is_telling(secret):
                self._finder.learn({secret: known})
        if self.on_found is not None:
            self.on_found(tuple(self.path), known)
        return self._leads.get(number, b"") + placeholder(self._alias.get(number, number)).encode()

    def _number(self, secret: bytes) -> int:
        number = self._next
        while number in self._finder.marked:  # the run's own data has a text like that
            number += 1
        self._next = number + 1
        return number

    def agree(self, then: Tree, now: Tree) -> bool:
        """On replay: whether two payloads are equal but for the numbers of secrets that the trace does not know, each
        of which stands for the same one everywhere in the run. From then on this process numbers them as the trace
        does."""
        before, after = PLACEHOLDER.split(_text(then)), PLACEHOLDER.split(_text(now))
        if len(before) != len(after) or len(before) == 1 or before[::2] != after[::2]:
            return False
        pairs = {(int(new), int(old)) for new, old in zip(after[1::2], before[1::2], strict=True)}
        if len({new for new, _ in pairs}) != len(pairs) or len({old for _, old in pairs}) != len(pairs):
            return False
        if not all(new == old or self._may_stand(new, old) for new, old in pairs):
            return False
        self._alias |= {new: old for new, old in pairs if new != old}
        return True

    def _may_stand(self, new: int, old: int) -> bool:
        """Whether a secret of this process may be the trace's ``old``: neither is known to be another."""
        known = self._alias.get(new)
        if known is not None:
            return known == old
        settled = self._alias.values()
        return new not in self._given and new not in settled and old not in settled

    def untold(self) -> list[Tree]:
        """The secrets that were met since this was asked last, for the entry that first holds them."""
        fresh = self.met[self._told :]
        self._told = len(self.met)
        self.fresh = False
        return [secret.facts() for secret in fresh]

    def goes_on(self, begun: bytes) -> None:
        """Until ``begun_no_more``, what begins like ``begun``, which was written as a secret, is that secret."""
        number = self._numbers.get(_plain(begun)) if begun else None
        if number is not None:
            self._begun = (begun, number)

    def begun_no_more(self) -> None:
        """What follows is a text of its own."""
        self._begun = None

    def led(self, secret: bytes, lead: bytes) -> None:
        """The first bytes of a secret were written before it could be told: from now on they stand before its
        placeholder everywhere, for on replay they do."""
        number = self._numbers.get(_plain(secret))
        if number is not None and len(lead) <= _LEAD_BYTES:
            self._leads.setdefault(number, lead)


def _by_name(values: Mapping[bytes, Known], given: Mapping[int, Secret]) -> Iterator[tuple[bytes, int]]:
    """The values of this machine's variables that the trace has numbers for."""
    by_name = {secret.name: number for number, secret in given.items() if secret.kind == "environment"}
    for value, known in values.items():
        if known.name in by_name:
            yield value, by_name[known.name]


def _plain(secret: bytes) -> bytes:
    """A secret without the escapes of the text that it was found in: it is one secret in each of them."""
    for _ in range(_CODINGS):
        layer = next((one for one in local_layers(secret) if one.data != secret), None)
        if layer is None:
            break
        secret = layer.data
    if secret.startswith(b"-----BEGIN"):
        return _ARMOUR.sub(b"", secret)  # spaces may be coded in several ways
    return secret


def is_telling(value: bytes) -> bool:
    """Whether a value that was met once may be looked for in every text: no word, and no path of names."""
    return (
        len(value) >= _LEARNED_BYTES
        and not is_open_value(value)
        and START.encode() not in value
        and (len(value) >= _LONG_BYTES or any(byte in b"0123456789" for byte in value))
    )


def _text(tree: Tree) -> str:
    return text_of(tree).decode()
