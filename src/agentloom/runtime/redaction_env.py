"""The values of environment variables that hold credentials: what must not be written, whoever passes it on.

A value is looked for when it is long enough to stand for itself: a shorter one, or a common word, stands in many texts
that have nothing to do with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.runtime.redaction_formats import is_open_value
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_names import is_secret_variable

__all__ = ["LEAST", "Environment", "environment_values", "password_in", "too_common"]

LEAST = 8
"""Characters from which a value is looked for."""

_NAMED = "AGENTLOOM_SECRET_ENV"
_WORD = re.compile(r"[A-Za-z_.-]{1,15}|[0-9]{1,9}|[0-9.,:-]{1,15}")
_PLAIN_WORD = re.compile(r"[A-Za-z]{1,15}|[0-9]{1,8}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/\s:@]{0,200}:([^/\s@]{1,400})@")


@dataclass(frozen=True, slots=True)
class Environment:
    """The values to look for, and the variables that they were taken from."""

    values: Mapping[bytes, Known]
    seen: dict[bytes, bytes]
    raw: dict[bytes, bytes]
    """The variables themselves, which may have changed since."""


def _raw() -> dict[bytes, bytes]:
    """The variables themselves, whatever stands in front of them in a run."""
    return cast("dict[bytes, bytes]", cast(Any, os.environ)._data)


_latest: list[Environment] = []


def environment_values(more: tuple[str, ...] = ()) -> Environment:
    """The secret values of the variables as they are now. ``more``: variables that a user names."""
    raw = _raw()
    if not more and _latest and _latest[0].seen == raw:
        return _latest[0]
    values: dict[bytes, Known] = {}
    named = {*more, *os.fsdecode(raw.get(_NAMED.encode(), b"")).split(",")}
    for raw_name, raw_value in raw.copy().items():
        name, value = os.fsdecode(raw_name), os.fsdecode(raw_value)
        for text in _secret_texts(name, value, chosen=name in named):
            values.setdefault(text.encode("utf-8", "surrogateescape"), Known("environment", name))
    found = Environment(values, raw.copy(), raw)
    if not more:
        _latest[:] = [found]
    return found


def _secret_texts(name: str, value: str, *, chosen: bool) -> list[str]:
    found: list[str] = []
    password = _PASSWORD.search(value)
    if password is not None and not too_common(password[1]):
        found.append(password[1])
    if chosen or is_secret_variable(name):
        plain = value.strip()
        if not too_common(plain) and (chosen or not _is_place(plain)):
            found.append(plain)
    return found


def password_in(value: str) -> tuple[int, int] | None:
    """Where in an address its password is."""
    found = _PASSWORD.search(value)
    return None if found is None else found.span(1)


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
