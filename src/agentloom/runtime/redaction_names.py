"""Names that say that a value is a credential: of variables, of fields and headers."""

from __future__ import annotations

import functools
import re

__all__ = [
    "SCHEMES",
    "SECRET_VARIABLE",
    "is_secret_header",
    "is_secret_name",
    "is_secret_variable",
    "scheme_of",
]

SCHEMES = ("bearer", "basic", "token", "digest")
"""What stands before a credential in a header, and is none (RFC 9110, 11.4; GitHub's ``token``)."""

SECRET_VARIABLE = re.compile(
    r"(^|[-_.])(|API|ACCESS|PRIVATE|SECRET|AUTH)(KEYS?|TOKEN|SECRETS?)($|[-_.])"
    r"|(^|[-_.])(PASSWORD|PASSWD|PASS|PASSPHRASE|PWD|CREDENTIALS?|CREDS|AUTH|DSN|COOKIE|JWT)($|[-_.])"
    r"|PASSWORD$",
    re.IGNORECASE,
)
_FOLDERS = frozenset(("PWD", "OLDPWD"))  # of a shell

# Whole words of names: `max_tokens`, `page_token` and `sort_key` are no credentials.
_SECRET_NAME = re.compile(
    r"(^|[-_.])(password|passwd|passphrase|pass[-_]?word|api[-_]?key|apikey|(access|auth|refresh|id|session|security|bearer"
    r"|csrf|oauth)[-_]?token|(client|app|consumer|shared)?[-_]?secret([-_]?(access[-_]?)?key)?|private[-_]?key|access[-_]?key"
    r"|authorization|proxy-authorization|(set-)?cookie2?|x[-_](api|auth|goog[-_]api)[-_](key|token)|credentials?)$",
    re.IGNORECASE,
)
_HEADERS = frozenset(
    (
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-auth-token",
    )
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME_CHARS = 64


def scheme_of(value: str) -> tuple[str, str]:
    """The scheme that a credential begins with, "" without one; and the rest of it."""
    scheme, gap, rest = value.partition(" ")
    return (scheme, rest) if gap and scheme.lower() in SCHEMES else ("", value)


def is_secret_variable(name: str) -> bool:
    """Whether a variable of that name holds a credential."""
    return SECRET_VARIABLE.search(name) is not None and name not in _FOLDERS


def is_secret_header(name: str) -> bool:
    """Whether the first of two texts is a header that holds a credential, and so the second a credential."""
    return name.lower() in _HEADERS


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a field or a header of that name holds a credential, wherever it stands in a payload."""
    if len(name) > _NAME_CHARS:
        return False
    return _SECRET_NAME.search(_CAMEL.sub("_", name)) is not None
