"""How long a provider asks to wait: from headers, and from the text of an error where it says so only there.

Sources: ``retry-after`` RFC 9110; ``retry-after-ms`` of OpenAI's SDK; ``x-ratelimit-reset-*`` of OpenAI, Groq, Azure,
Cerebras, Together; ``x-ratelimit-reset`` of OpenRouter; ``anthropic-ratelimit-*-reset`` of Anthropic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["asked_delay", "reset_delay", "said_delay"]

_RESET = re.compile(r"^(?:x-ratelimit-reset(?:-(?P<after>.+))?|(?P<before>anthropic-ratelimit-.+)-reset)$")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SAID = re.compile(
    r"(?:try again|retry)[a-z ]{0,12} in ((?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d)[a-z]*\s?)+)", re.IGNORECASE
)
_LONGEST = 7 * 86400.0  # seconds; a number above it is a point in time


def asked_delay(headers: Mapping[str, str]) -> float | None:
    """Seconds by ``retry-after-ms``, or by ``retry-after`` in seconds or as a date against the ``date`` header."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wait = headers.get("retry-after")
    return None if wait is None else _wait(wait, headers)


def reset_delay(headers: Mapping[str, str]) -> float | None:
    """Seconds until the limit that was reached opens again: the longest of those with nothing left; when none says
    so, that of the tokens (what is left is too little), or the longest."""
    spent: list[float] = []
    tokens: list[float] = []
    others: list[float] = []
    for name, value in _lower(headers).items():
        found = _RESET.match(name)
        wait = _wait(value, headers) if found else None
        if found is None or wait is None:
            continue
        left = _left(found, headers)
        place = spent if left == 0 else tokens if name.endswith("tokens") else others
        place.append(wait)
    chosen = spent or tokens or others
    return max(chosen) if chosen else None


def said_delay(text: str) -> float | None:
    """Seconds in a text such as ``Please try again in 1m5.289s``."""
    found = _SAID.search(text)
    return _duration(found[1]) if found else None


def _left(found: re.Match[str], headers: Mapping[str, str]) -> float | None:
    if found["before"]:
        return _number(headers.get(f"{found['before']}-remaining"))
    after = f"-{found['after']}" if found["after"] else ""
    return _number(headers.get(f"x-ratelimit-remaining{after}"))


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None


def _wait(text: str, headers: Mapping[str, str]) -> float | None:
    """Seconds: a number, a duration (``6m0s``), a point in time (milliseconds or seconds since 1970, RFC 3339, RFC
    9110) against the ``date`` header. None for anything else, and for a point in time without that header."""
    number = _number(text)
    if number is not None and number <= _LONGEST:
        return number
    sent = _moment(headers.get("date"))
    if number is None:
        duration = _duration(text)
        if duration is not None:
            return duration
        until = _moment(text)
    else:
        until = number / 1000 if number > 1e11 else number
    return None if until is None or sent is None else max(0.0, until - sent)


def _duration(text: str) -> float | None:
    compact = re.sub(r"\s|(?<=[smhd])(?:econds?|inutes?|ours?|ays?)", "", text.lower())
    parts = _PART.findall(compact)
    if not parts or "".join(_flat(parts)) != compact:
        return None
    return sum(float(count) * _SECONDS[unit] for count, unit in parts)


def _flat(parts: Iterable[tuple[str, str]]) -> Iterable[str]:
    return (piece for part in parts for piece in part)


def _moment(text: str | None) -> float | None:
    if not text:
        return None
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
        except (ValueError, TypeError):
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None
