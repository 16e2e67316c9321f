"""What users declare secret beside what is found by itself: values, fields, patterns, functions, variables."""

from __future__ import annotations

import contextvars
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from agentloom.errors import ValueRefused
from agentloom.format.canonical import Tree
from agentloom.runtime.contexts import put
from agentloom.runtime.fieldrules import steps_of
from agentloom.runtime.redaction_env import LEAST, environment_values, too_common
from agentloom.runtime.redaction_found import Found, Known

__all__ = [
    "NO_RULES",
    "Rules",
    "SecretFinder",
    "checked_rules",
    "in_effect",
    "joined",
    "rules_of_record",
    "secrets",
    "use_secrets",
]

SecretFinder = Callable[[str], Iterable["tuple[int, int] | tuple[int, int, str]"]]
"""Finds what is secret in a text: start and end of each, and what it is (``"email"``)."""


@dataclass(frozen=True)
class Rules:
    """Rules of a user, as `secrets` makes them."""

    values: Mapping[bytes, Known] = field(default_factory=dict[bytes, Known])
    fields: tuple[tuple[str, ...], ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    functions: tuple[SecretFinder, ...] = ()
    variables: tuple[str, ...] = ()

    @property
    def field_names(self) -> tuple[bytes, ...]:
        """The names at the ends of the paths."""
        last = [[step for step in path if step != "[]"][-1:] for path in self.fields]
        return tuple(sorted({name.encode() for one in last for name in one}))

    def names(self, path: Sequence[object]) -> bool:
        """Whether a place in a payload is one that was named: its last steps are a path."""
        if not self.fields:
            return False
        steps = ["[]" if type(step) is int else step for step in path]
        return any(steps[-len(wanted) :] == list(wanted) for wanted in self.fields)

    def finder(self) -> Callable[[bytes], Iterable[Found]] | None:
        """Finds what patterns and functions find; None without any."""
        if not self.patterns and not self.functions:
            return None
        compiled = [(name, re.compile(pattern)) for name, pattern in self.patterns]

        def find(data: bytes) -> list[Found]:
            text = data.decode("utf-8", "surrogateescape")
            spans = [
                (match.start(1 if pattern.groups else 0), match.end(1 if pattern.groups else 0), name)
                for name, pattern in compiled
                for match in pattern.finditer(text)
            ]
            for function in self.functions:
                spans += [(start, end, *(more or ("personal data",))) for start, end, *more in function(text)]
            for start, end, kind in spans:
                if not 0 <= start < end <= len(text):
                    raise ValueRefused(
                        "secrets(find=)",
                        "tuple",
                        f"a function gave the span {start} to {end} ({kind}) in a text of {len(text)} characters",
                        hint="give start and end as in text[start:end]",
                    )
            return [Found(*_bytes_span(text, start, end), Known(str(kind))) for start, end, kind in spans]

        return find

    def facts(self) -> dict[str, Tree]:
        """What the trace keeps of them, so that a replay redacts alike. Values are not kept."""
        facts: dict[str, Tree] = {}
        if self.fields:
            facts["paths"] = [".".join(path).replace(".[]", "[]") for path in self.fields]
        if self.patterns:
            facts["patterns"] = [[name, pattern] for name, pattern in self.patterns]
        if self.variables:
            facts["env"] = list(self.variables)
        return facts


NO_RULES = Rules()


def _bytes_span(text: str, start: int, end: int) -> tuple[int, int]:
    if text.isascii():
        return start, end
    first = len(text[:start].encode("utf-8", "surrogateescape"))
    return first, first + len(text[start:end].encode("utf-8", "surrogateescape"))


def secrets(
    *,
    values: Iterable[str | bytes] = (),
    paths: Iterable[str] = (),
    patterns: Iterable[str | re.Pattern[str]] | Mapping[str, str | re.Pattern[str]] = (),
    env: Iterable[str] = (),
    find: SecretFinder | Iterable[SecretFinder] = (),
) -> Rules:
    """What shall not be written of the runs in ``with use_secrets(secrets(...))``, beside what is found by itself.

    ``values``: texts themselves, in every coding. ``paths``: fields by the ends of their paths: ``ssn``,
    ``card.number``,
    ``messages[].name``. ``patterns``: regular expressions, by name or in a list; with a group, the first is
    what is secret.
    ``env``: variables whose values are secret although their names do not say so. ``find``: functions that
    give the spans of what is secret in a text.

    Raises ``ValueRefused`` for a value that is too short or too common to be looked for, and for a path or pattern that
    is none.
    """
    known: dict[bytes, Known] = {}
    for value in values:
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        if too_common(text, chosen=True):
            raise ValueRefused(
                "secrets(values=)",
                type(value).__name__,
                f"a value of {len(text)} characters, too short or too common to be looked for in every text",
                hint=f"give values of at least {LEAST} characters that are no words, or name the field",
            )
        known[text.encode("utf-8", "surrogateescape")] = Known("declared value")
    functions = (find,) if callable(find) else tuple(find)
    return Rules(known, _paths(paths), _patterns(patterns), functions, tuple(env))


def _paths(paths: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    made: list[tuple[str, ...]] = []
    for path in paths:
        try:
            made.append(steps_of(path))
        except ValueError as error:
            raise ValueRefused("secrets(paths=)", "str", str(error)) from None
    return tuple(made)


def _patterns(given: Any) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str | re.Pattern[str]]] = []
    if isinstance(given, Mapping):
        pairs = list(cast("Mapping[str, str]", given).items())
    else:
        pairs = [("pattern", one) for one in given]
    made: list[tuple[str, str]] = []
    for name, one in pairs:
        text, flags = (one.pattern, one.flags) if isinstance(one, re.Pattern) else (str(one), 0)
        made.append((name, _checked(f"(?i){text}" if flags & re.IGNORECASE else text)))
    return tuple(made)


def _checked(text: str) -> str:
    try:
        found = re.compile(text)
    except re.error as error:
        reason = f"{text!r:.60} is no regular expression: {error}"
        raise ValueRefused("secrets(patterns=)", "str", reason) from None
    if found.match(""):
        raise ValueRefused(
            "secrets(patterns=)", "str", f"{text!r:.60} fits the empty text, and so every place"
        )
    return text


# -- in effect --------------------------------------------------------------------------------------------------------

_in_use: contextvars.ContextVar[Rules] = contextvars.ContextVar("agentloom.secrets", default=NO_RULES)


def _joined(first: Rules, then: Rules) -> Rules:
    return Rules(
        {**first.values, **then.values},
        first.fields + then.fields,
        first.patterns + then.patterns,
        first.functions + then.functions,
        first.variables + then.variables,
    )


@contextmanager
def use_secrets(*rules: Rules) -> Generator[None]:
    """For the block, and for every run that is recorded or replayed in it, these rules are in effect."""
    whole = _in_use.get()
    for one in rules:
        whole = _joined(whole, one)
    token = put(_in_use, whole)
    try:
        yield
    finally:
        _in_use.reset(token)


def in_effect(*more: Rules) -> Rules:
    """The rules of the running context, and ``more``, with the values of the variables that they name."""
    whole = _in_use.get()
    for one in more:
        whole = _joined(whole, one)
    return _with_variables(whole)


def joined(first: Rules, then: Rules) -> Rules:
    """Both, with the values of the variables that they name."""
    return _with_variables(_joined(first, then))


def checked_rules(where: str, rules: object) -> Rules:
    """What was given as ``secrets=``; none without. ``ValueRefused`` for what ``secrets()`` did not make."""
    if rules is None:
        return NO_RULES
    if not isinstance(rules, Rules):
        reason = "rules are what secrets(...) makes"
        raise ValueRefused(where, type(rules).__name__, reason, hint='give secrets=secrets(paths=["ssn"])')
    return rules


def _with_variables(rules: Rules) -> Rules:
    if not rules.variables:
        return rules
    values = {
        value: known
        for value, known in environment_values(rules.variables).values.items()
        if known.name in rules.variables
    }
    return _joined(rules, Rules(values))


def rules_of_record(policy: object) -> Rules:
    """The rules in effect, with those that a trace was recorded under (its ``policy``)."""
    rules = _in_use.get()
    facts = cast("dict[str, Any]", policy).get("secrets") if isinstance(policy, dict) else None
    if isinstance(facts, dict):
        kept = cast("dict[str, Any]", facts)
        recorded = Rules(
            fields=_paths(kept.get("paths") or ()),
            patterns=tuple((str(name), str(pattern)) for name, pattern in kept.get("patterns") or ()),
            variables=tuple(kept.get("env") or ()),
        )
        rules = _joined(rules, recorded)
    return _with_variables(rules)
