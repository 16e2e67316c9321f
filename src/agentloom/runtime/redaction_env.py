"""The values of environment variables that hold credentials: what must not be written, whoever passes it on.

A value is looked for when it is long enough to stand for itself: a shorter one, or a common word, stands in many texts
that have nothing to do with it. Of a value that is JSON each text in it is a value of its own, and of an address its
password: clients read them so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import unquote

import orjson

from agentloom.runtime.redaction_formats import is_open_value
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_names import is_secret_variable

__all__ = [
    "LEAST",
    "WATCH",
    "Environment",
    "Watch",
    "environment_values",
    "hidden_parts",
    "passwords_in",
    "secret_texts",
    "too_common",
]

LEAST = 8
"""Characters from which a value is looked for."""

_NAMED = "AGENTLOOM_SECRET_ENV"
_WORD = re.compile(r"[A-Za-z_.-]{1,15}|[0-9]{1,9}|[0-9.,:-]{1,15}")
_PLAIN_WORD = re.compile(r"[A-Za-z]{1,15}|[0-9]{1,8}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)
# RFC 3986, 3.2.1. Up to the last "@" before a slash: a password may hold one. Each match begins behind a slash and
# holds none, so that no text takes more than linear time.
_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s]+)@")
_PARTS = re.compile(
    r"[a-z][a-z0-9+.-]{0,30}://(?:(?P<user>[^/\s:@]*)(?::(?P<password>[^/\s]*))?@)?[^/\s?#]*(?P<rest>\S*)\Z",
    re.IGNORECASE,
)
_JSON_BYTES = 1 << 20


@dataclass(slots=True)
class Watch:
    """How often this process's environment was written, where whoever writes it says so."""

    writes: int = 0
    told: bool = False
    """Whether every write is told; else only looking at all variables shows what changed."""


WATCH = Watch()


@dataclass(frozen=True, slots=True)
class Environment:
    """The values to look for, and the variables that they were taken from."""

    values: Mapping[bytes, Known]
    seen: dict[bytes, bytes]
    raw: dict[bytes, bytes]
    """The variables themselves, which may have changed since."""
    writes: int

    @property
    def current(self) -> bool:
        """Whether the variables are what they were."""
        if WATCH.told and self.writes == WATCH.writes:
            return True
        return self.raw == self.seen


def _raw() -> dict[bytes, bytes]:
    """The variables themselves, whatever stands in front of them in a run."""
    return cast("dict[bytes, bytes]", cast(Any, os.environ)._data)


_latest: list[Environment] = []


def environment_values(more: tuple[str, ...] = ()) -> Environment:
    """The secret values of the variables as they are now. ``more``: variables that a user names."""
    raw, writes = _raw(), WATCH.writes
    if not more and _latest and _latest[0].raw is raw and _latest[0].seen == raw:
        return replace(_latest[0], writes=writes)
    values: dict[bytes, Known] = {}
    named = {*more, *os.fsdecode(raw.get(_NAMED.encode(), b"")).split(",")}
    seen = raw.copy()
    for raw_name, raw_value in seen.items():
        name, value = os.fsdecode(raw_name), os.fsdecode(raw_value)
        for text in secret_texts(name, value, chosen=name in named):
            values.setdefault(text.encode("utf-8", "surrogateescape"), Known("environment", name))
    found = Environment(values, seen, raw, writes)
    if not more:
        _latest[:] = [found]
    return found


def secret_texts(name: str, value: str, *, chosen: bool = False) -> list[str]:
    """What is looked for of a variable. ``chosen``: a user says that it is secret, whatever its name."""
    found: list[str] = []
    for start, end in passwords_in(value):
        whole = value[start:end]
        for text in (whole, whole.partition("@")[0], unquote(whole)):
            if text not in found and not too_common(text):
                found.append(text)
    if chosen or is_secret_variable(name):
        plain = value.strip()
        parts = [] if _is_place(plain) else [text for _, text in _hidden(value)]
        if parts != [value]:
            found += [text for text in parts if text not in found and not too_common(text)]
        if not too_common(plain) and (chosen or not _is_place(plain)):
            found.append(plain)
    return found


def passwords_in(value: str) -> list[tuple[int, int]]:
    """Where in an address, or in several, its password is."""
    return [match.span(1) for match in _PASSWORD.finditer(value)] if "://" in value else []


def hidden_parts(value: str) -> list[tuple[int, int]]:
    """Which parts of a credential take a placeholder: all of it; of what a client is to read, what in it is secret. Of
    JSON each text that is more than a word or an address, of an address who signs in and the password, without these
    what stands behind the host."""
    return [span for span, _ in _hidden(value)]


def _hidden(value: str) -> list[tuple[tuple[int, int], str]]:
    """The parts of ``hidden_parts``, each with the text that a client reads there: of JSON what its escapes stand for,
    of anything else what stands there."""
    address = _PARTS.match(value)
    if address is not None:
        spans = [span for part in ("user", "password") if (span := address.span(part)) != (-1, -1)]
        spans = [span for span in spans if span[0] < span[1] and not too_common(value[slice(*span)])]
        spans = spans or [address.span("rest" if len(address["rest"]) > 1 and "@" not in value else 0)]
        return [(span, value[slice(*span)]) for span in spans]
    whole = [((0, len(value)), value)]
    if value.lstrip()[:1] not in ("{", "[") or len(value) > _JSON_BYTES:
        return whole
    try:
        tree: object = orjson.loads(value)
    except ValueError:
        return whole
    wanted = {text for text in _texts(tree) if not too_common(text) and not _is_place(text)}
    found = [
        (match.span(1), text)
        for match in _QUOTED.finditer(value)
        if match["colon"] is None and (text := _json_text(match[1])) in wanted
    ]
    return found or whole


# A text of JSON, or a key with its colon.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?P<colon>\s*:)?', re.DOTALL)


def _json_text(inner: str) -> str:
    return str(orjson.loads(f'"{inner}"')) if "\\" in inner else inner


def _texts(tree: object) -> Iterator[str]:
    todo = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            todo += cast("dict[str, object]", item).values()
        elif isinstance(item, list):
            todo += cast("list[object]", item)


def too_common(value: str, *, chosen: bool = False) -> bool:
    """Whether a value is too short or too common a word to be looked for in every text. ``chosen``: a user
    says that it is secret, and only what would be found everywhere is."""
    if len(value) < LEAST or is_open_value(value.encode("utf-8", "surrogateescape")):
        return True
    return (_PLAIN_WORD if chosen else _WORD).fullmatch(value) is not None


def _is_place(value: str) -> bool:
    """Whether a value is where something lies: a file, or an address without a password."""
    if _ADDRESS.match(value):
        return "@" not in value
    if value[:1] not in ("/", "~", "."):
        return False
    return os.path.exists(value) or (value.count("/") > 1 and os.path.exists(os.path.dirname(value)))
