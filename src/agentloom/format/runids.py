"""Run ids: 128 bits that sort by time, as 26 lower-case characters (docs/trace-format.md, Run ids).

48 bits of milliseconds since 1970 (UTC), then 80 random bits, in Crockford's base 32 without padding: the order of the
texts is the order of the times, and no letter is taken for a digit when read aloud.
"""

from __future__ import annotations

import re

from agentloom.errors import FormatError

__all__ = ["RANDOM_BYTES", "is_run_id", "milliseconds", "new_run_id"]

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_TEXT = re.compile(f"[0-7][{_DIGITS}]{{25}}")
RANDOM_BYTES = 10


def new_run_id(ms: int, random: bytes) -> str:
    """A run id from milliseconds since 1970 and ten random bytes."""
    if not 0 <= ms < 2**48 or len(random) != RANDOM_BYTES:
        raise FormatError(
            "runid.syntax", f"a run id needs 0 <= ms < 2^48 and 10 random bytes: {ms}, {len(random)}"
        )
    number = ms << 80 | int.from_bytes(random, "big")
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


def is_run_id(text: str) -> bool:
    """Whether ``text`` is a whole run id."""
    return _TEXT.fullmatch(text) is not None


def milliseconds(run: str) -> int:
    """When the run began, in milliseconds since 1970. ``FormatError`` when ``run`` is not a run id."""
    if not is_run_id(run):
        raise FormatError("runid.syntax", f"{run!r} is not a run id (26 characters of Crockford base 32)")
    number = 0
    for digit in run:
        number = number << 5 | _VALUES[digit]
    return number >> 80
