"""Words for messages."""

from __future__ import annotations

__all__ = ["kind_of"]


def kind_of(value: object) -> str:
    """What ``value`` is, with its article: ``an int``, ``a str``, ``a UUID``; ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    sounded = name[0] in "AEIOaeio" or (
        name[0] in "Uu" and not name.lower().startswith(("uni", "use", "uuid"))
    )
    return f"{'an' if sounded else 'a'} {name}"
