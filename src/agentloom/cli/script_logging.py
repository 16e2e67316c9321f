"""Settings of ``logging`` that a tool of a script may change: levels, what is disabled, handlers that write to the
standard streams. Another handler writes elsewhere, which a replay does not: an empty one stands in its place
there."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["keep_logging", "look_at_logging", "put_logging", "told_of_logging"]

_OURS = "agentloom"
_STREAMS = ("stdout", "stderr")


def look_at_logging() -> dict[str, Any]:
    """By the name of the logger (empty: the root): level, disabled, propagate, handlers. Under ``=`` what is
    disabled for all. Empty where nobody has loaded ``logging``."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return {}
    found: dict[str, Any] = {"": _of(logging.root), "=": [logging.root.manager.disable]}
    kind = logging.Logger
    for name, logger in logging.root.manager.loggerDict.items():
        if isinstance(logger, kind) and not name.startswith(_OURS):
            found[name] = _of(logger)
    return found


def _of(logger: Any) -> list[Any]:
    handlers = logger.handlers
    levels = [handler.level for handler in handlers] if handlers else _NONE
    return [logger.level, logger.disabled, logger.propagate, handlers[:], levels]


_NONE: list[int] = []
_NEW: list[Any] = [0, False, True, [], _NONE]
"""What a logger is that nobody has changed."""


def keep_logging(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What is another than before; of each handler its number before, or what it is made of."""
    kept: dict[str, Any] = {}
    for name, found in now.items():
        old = before.get(name, _NEW)
        if found == old:
            continue
        if name == "=":
            kept[name] = found
            continue
        handlers = [
            [old[3].index(one), one.level] if one in old[3] else [_made_of(one), one.level]
            for one in found[3]
        ]
        kept[name] = [*found[:3], handlers]
    return kept


def _made_of(handler: Any) -> list[Any]:
    """A handler of a standard stream with a plain formatter as data. An empty list: another one."""
    logging: Any = sys.modules["logging"]
    formatter = handler.formatter
    if type(handler) is not logging.StreamHandler or handler.filters or handler.terminator != "\n":
        return []
    stream = next((name for name in _STREAMS if handler.stream is getattr(sys, name)), None)
    if stream is None or type(formatter) not in (logging.Formatter, type(None)):
        return []
    if formatter is None:
        return [stream, None]
    styles = {kind[0]: letter for letter, kind in logging._STYLES.items()}
    letter = styles.get(type(formatter._style))
    if letter is None or getattr(formatter._style, "_defaults", None):
        return []
    return [stream, [formatter._fmt, formatter.datefmt, letter]]


def told_of_logging(kept: dict[str, Any]) -> str | None:
    """In words, which loggers have handlers for which an empty one stands on replay."""
    others = [
        name or "root"
        for name, found in kept.items()
        if name != "=" and any(one[0] == [] for one in found[3])
    ]
    return f"gives the logger {', '.join(others)} a handler that writes nothing on replay" if others else None


def put_logging(kept: dict[str, Any]) -> None:
    """Set what was kept."""
    import logging

    for name, found in kept.items():
        if name == "=":
            logging.disable(found[0])
            continue
        logger: Any = logging.getLogger(name or None)
        level, logger.disabled, logger.propagate, handlers = found
        old, logger.handlers = [*logger.handlers], []
        for made_of, its_level in handlers:
            if isinstance(made_of, int):
                handler: Any = old[made_of] if made_of < len(old) else logging.NullHandler()
            else:
                handler = _made(made_of)
            handler.setLevel(its_level)
            logger.addHandler(handler)
        logger.setLevel(level)


def _made(made_of: list[Any]) -> Any:
    import logging

    if not made_of:
        return logging.NullHandler()
    stream, formatter = made_of
    handler = logging.StreamHandler(getattr(sys, stream))
    if formatter is not None:
        text, dates, letter = formatter
        handler.setFormatter(logging.Formatter(text, dates, letter))
    return handler
