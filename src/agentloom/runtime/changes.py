"""Profiles changed by users: fields and parts of fields moved between key, noted and secret.

A changed profile is named after the one it changes and a digest of the change (``agentloom.model/1+3f9c2a7b``), and
the change itself is written beside each request that it sorted: a replay goes by what was recorded.
"""

from __future__ import annotations

import contextvars
import hashlib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from agentloom.errors import FormatError, NotSupported
from agentloom.format.canonical import Tree, canonical
from agentloom.format.words import kind_of
from agentloom.runtime.contexts import put
from agentloom.runtime.fieldrules import Role, steps_of, tree_of_rules
from agentloom.runtime.profiles import Profile, get

__all__ = [
    "Change",
    "change_of",
    "changed",
    "describe",
    "in_effect",
    "profile",
    "profiles_of",
    "read_rule",
    "use_profiles",
]


@dataclass(frozen=True, slots=True)
class Change:
    """What a user changes of a profile: the role of places, an allow-list, places whose spacing does not count."""

    roles: tuple[tuple[str, Role], ...] = ()
    strict: bool = False
    spacing: tuple[str, ...] = ()
    all_spacing: bool = False

    @property
    def rule(self) -> dict[str, Tree]:
        """The change as the trace keeps it, without the name of the profile that it changes."""
        rule: dict[str, Tree] = {}
        for role in ("key", "noted", "secret"):
            paths: list[Tree] = [path for path, one in self.roles if one == role]
            if paths:
                rule[role] = paths
        if self.strict:
            rule["strict"] = True
        if self.all_spacing:
            rule["normalise"] = "whitespace"
        elif self.spacing:
            rule["normalise"] = dict.fromkeys(self.spacing, "whitespace")
        return rule


def change_of(
    *,
    key: Iterable[str] = (),
    noted: Iterable[str] = (),
    secret: Iterable[str] = (),
    strict: bool = False,
    normalise: str | Mapping[str, str] | None = None,
) -> Change:
    """A change from the arguments of ``profile`` (see there). ``ValueError`` for what is no path, or in two lists;
    ``TypeError`` for a text where a list belongs."""
    roles: dict[str, Role] = {}
    given: list[tuple[Role, Iterable[str]]] = [("key", key), ("noted", noted), ("secret", secret)]
    for role, paths in given:
        if isinstance(paths, str) or not isinstance(cast("object", paths), Iterable):
            raise TypeError(f"{role}={paths!r}: give a list of paths, such as {role}=[{paths!r}]")
        for path in paths:
            steps_of(path)
            if roles.setdefault(path, role) != role:
                raise ValueError(f"{path!r} cannot be {roles[path]} and {role}: name it once")
    return Change(tuple(sorted(roles.items())), strict, *_spacing(normalise))


def _spacing(normalise: str | Mapping[str, str] | None) -> tuple[tuple[str, ...], bool]:
    if normalise is None:
        return (), False
    if not isinstance(cast("object", normalise), str | Mapping):
        raise TypeError(f"normalise={normalise!r}: 'whitespace', or a mapping from paths to it")
    wanted = {"": normalise} if isinstance(normalise, str) else dict(normalise)
    for path, how in wanted.items():
        if how != "whitespace":
            raise ValueError(f"normalise knows 'whitespace', not {how!r}")
        if path:
            steps_of(path)
    return ((), True) if "" in wanted else (tuple(sorted(wanted)), False)


def changed(base: Profile, change: Change) -> Profile:
    """``base`` with a change. ``ValueError`` where a secret would be written, or an allow-list allows nothing."""
    origin = base.base or base
    whole = change if base.rule is None else _joined(_change_in(base.rule), change)
    cached = _made.get((origin.name, whole))
    if cached is None:
        cached = _made[origin.name, whole] = _make(origin, whole)
    return cached


_made: dict[tuple[str, Change], Profile] = {}


def _make(origin: Profile, change: Change) -> Profile:
    rule: dict[str, Tree] = {"base": origin.name, **change.rule}
    fields = {path: role for path, role in change.roles if len(steps_of(path)) == 1}
    for path, role in change.roles:
        if steps_of(path)[0] in origin.secret and role != "secret":
            raise ValueError(f"{path!r} is secret in {origin.name} and stays so: a secret is never written")
    named = {
        role: frozenset(name for name, one in fields.items() if one == role)
        for role in ("key", "noted", "secret")
    }
    if change.strict and origin.key is None and "key" not in rule:
        raise ValueError(f"a strict {origin.name} needs key=[...]: the fields that count")
    known = origin.key
    if known is not None or (change.strict and named["key"]):
        known = ((known or frozenset()) | named["key"]) - named["noted"] - named["secret"]
    deep: list[tuple[str, Role]] = [(path, role) for path, role in change.roles if path not in fields]
    places = tree_of_rules(deep, change.spacing) if deep or change.spacing else None
    return Profile(
        f"{origin.name}+{hashlib.sha256(canonical(cast(Tree, rule))).hexdigest()[:8]}",
        key=known,
        noted=(origin.noted - named["key"] - named["secret"]) | named["noted"],
        secret=origin.secret | named["secret"],
        scrub=origin.scrub,
        minted=origin.minted,
        strict=change.strict,
        collapse=change.all_spacing,
        places=places,
        base=origin,
        rule=rule,
    )


def _joined(first: Change, then: Change) -> Change:
    """Both changes; where they disagree the second holds, but nothing secret becomes less."""
    roles = dict(first.roles)
    roles.update({path: role for path, role in then.roles if roles.get(path) != "secret"})
    spacing = tuple(sorted({*first.spacing, *then.spacing}))
    everywhere = first.all_spacing or then.all_spacing
    return Change(
        tuple(sorted(roles.items())), first.strict or then.strict, () if everywhere else spacing, everywhere
    )


def profile(
    base: str,
    *,
    key: Iterable[str] = (),
    noted: Iterable[str] = (),
    secret: Iterable[str] = (),
    strict: bool = False,
    normalise: str | Mapping[str, str] | None = None,
) -> Profile:
    """A profile like ``base`` (``agentloom.model/1``, ``openai.chat/1``, ``http/1``, ``tool/1``, ``plain/1``), changed.

    ``key``, ``noted``, ``secret``: paths of fields that are compared, that may differ and are reported, that are never
    written: ``user``, ``metadata.trace``, ``args.request_id``, ``messages[].name``. ``strict``: only fields that are
    ``key`` count, all others are noted. ``normalise``: ``"whitespace"``, or a mapping from paths to it: spacing in
    texts does not count; a difference is reported as noted. Give the result to ``@agent(profiles=[...])`` or to
    ``use_profiles``.

    Raises ``NotSupported`` for an unknown ``base`` and ``ValueError`` for paths and rules that cannot be.
    """
    change = change_of(key=key, noted=noted, secret=secret, strict=strict, normalise=normalise)
    return changed(get(base), change)


# -- in effect --------------------------------------------------------------------------------------------------------

_in_use: contextvars.ContextVar[Mapping[str, Profile] | None] = contextvars.ContextVar(
    "agentloom.profiles", default=None
)


def profiles_of(given: object) -> tuple[Profile, ...]:
    """``given`` as profiles. ``TypeError`` for anything else, before a run goes by it."""
    several = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else (given,)
    for one in several:
        if not isinstance(one, Profile):
            raise TypeError(f"profiles are a list of what profile(...) makes; {kind_of(one)} is none")
    if not isinstance(given, Iterable):
        raise TypeError("profiles are a list of what profile(...) makes: give [it]")
    return cast("tuple[Profile, ...]", several)


@contextmanager
def use_profiles(*profiles: Profile) -> Generator[None]:
    """For the block, and for every task, thread and run started in it, these profiles stand in for the ones they
    change. Inside of another such block the changes of both hold."""
    held = dict(_in_use.get() or {})
    for one in profiles_of(profiles):
        before = held.get(one.family)
        held[one.family] = (
            one if before is None or one.rule is None else changed(before, _change_in(one.rule))
        )
    token = put(_in_use, held)
    try:
        yield
    finally:
        _in_use.reset(token)


def in_effect(name: str, change: Change | None) -> Profile:
    """The profile of that name as the program has it here; ``change`` is that of the tool that is called."""
    used = _in_use.get()
    held = get(name) if used is None else used.get(name) or get(name)
    return held if change is None else changed(held, change)


# -- in the trace -----------------------------------------------------------------------------------------------------

_MEMBERS = frozenset(["base", "key", "noted", "secret", "strict", "normalise"])


def read_rule(name: str, rule: Tree) -> Profile:
    """The profile that a trace names with its rule. ``FormatError`` for a rule that is none, ``NotSupported`` for one
    that this version does not know."""
    body: Any = rule
    if not isinstance(body, dict) or not isinstance(cast("dict[str, Any]", body).get("base"), str):
        raise FormatError("profile.rule", f"the rule of profile {name} is malformed", profile=name)
    fields = cast("dict[str, Any]", body)
    unknown = sorted(fields.keys() - _MEMBERS)
    if unknown:
        raise NotSupported(
            f"the rule of profile {name} has {', '.join(unknown)}, which this version does not know",
            hint="use a newer agentloom to replay this trace",
            profile=name,
        )
    try:
        return replace(changed(get(fields["base"]), _change_in(fields)), name=name)
    except (ValueError, TypeError, AttributeError) as error:
        raise FormatError(
            "profile.rule", f"the rule of profile {name} is malformed: {error}", profile=name
        ) from error


def _change_in(rule: Mapping[str, Any]) -> Change:
    return change_of(
        key=rule.get("key", ()),
        noted=rule.get("noted", ()),
        secret=rule.get("secret", ()),
        strict=rule.get("strict", False) is True,
        normalise=rule.get("normalise"),
    )


def describe(profile: Profile) -> str:
    """A profile in a few words: what was changed of which."""
    rule = profile.rule
    if rule is None:
        return f"{profile.name} unchanged"
    words: list[str] = []
    for role in ("key", "noted", "secret"):
        paths = rule.get(role)
        if isinstance(paths, list):
            words.append(f"{role} {', '.join(map(str, paths))}")
    words += ["strict"] if profile.strict else []
    normalise = rule.get("normalise")
    if normalise is not None:
        words.append("spacing of " + ", ".join(normalise) if isinstance(normalise, dict) else "any spacing")
    return f"{profile.family} with {'; '.join(words) or 'no change'}"
