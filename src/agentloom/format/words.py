"""Words for messages."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["kind_of", "moment"]


def kind_of(value: object) -> str:
    """What ``value`` is, with its article: ``an int``, ``a str``, ``a UUID``; ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    sounded = name[0] in "AEIOaeio" or (
        name[0] in "Uu" and not name.lower().startswith(("uni", "use", "uuid"))
    )
    return f"{'an' if sounded else 'a'} {name}"


def moment(at: int) -> str:
    """A time (nanoseconds since 1970) to the second: ``2026-11-29 07:03:11 UTC``."""
    return f"{datetime.fromtimestamp(at // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"
