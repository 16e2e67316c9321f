"""urllib3's errors without the pools and connections that they hold, and with them again in the run."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Generator
from typing import Any, cast

from agentloom.adapters.exchanges import bare_error

__all__ = ["cleaned", "restored"]

_FACTS = "agentloom_facts"
_CONNECTED = "agentloom_connected"
_POOL, _CONN = {"$is": "pool"}, {"$is": "connection"}


@contextlib.contextmanager
def cleaned(urllib3: Any, pool: Any, conn: Any) -> Generator[None]:
    """Errors of urllib3 and below leave the block as they can be written down."""
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError, http.client.HTTPException) as error:
        made = _Packing(urllib3, pool, conn).packed(error)
        setattr(made, _CONNECTED, bool(getattr(conn, "has_connected_to_proxy", False)))
        raise made  # noqa: B904 - its causes are its own


class _Packing:
    def __init__(self, urllib3: Any, pool: Any, conn: Any) -> None:
        self._urllib3, self._pool, self._conn = urllib3, pool, conn

    def packed(self, error: BaseException) -> BaseException:
        made = bare_error(error)
        if made is None:
            made = cast("BaseException", self._urllib3.exceptions.HTTPError(str(error)))
            kind = type(error)
            named = getattr(self._urllib3.exceptions, kind.__name__, None) is kind
            facts = {
                "kind": kind.__name__ if named else "HTTPError",
                "args": [self._value(one) for one in error.args],
                "attrs": {name: self._value(one) for name, one in vars(error).items()},
            }
            setattr(made, _FACTS, facts)
        if error.__cause__ is not None:
            made.__cause__ = self.packed(error.__cause__)
        return made

    def _value(self, value: object) -> object:
        if value is self._pool:
            return _POOL
        if value is self._conn:
            return _CONN
        if isinstance(value, BaseException):
            return {"$is": "error", "error": self.packed(value)}
        return value if value is None or isinstance(value, str | int | float | bool | bytes) else str(value)


@contextlib.contextmanager
def restored(urllib3: Any, pool: Any, conn: Any) -> Generator[None]:
    """Recorded errors leave the block as urllib3 raises them."""
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError, http.client.HTTPException) as error:
        connected = error.__dict__.pop(_CONNECTED, None)
        if connected is not None and hasattr(conn, "_has_connected_to_proxy"):
            conn._has_connected_to_proxy = connected
        made = _unpacked(urllib3, pool, conn, error)
        if made is error:
            raise
        raise made  # noqa: B904 - its causes are its own


def _unpacked(urllib3: Any, pool: Any, conn: Any, error: BaseException) -> BaseException:
    facts = error.__dict__.pop(_FACTS, None)
    if facts is None:
        return error
    cls = getattr(urllib3.exceptions, facts["kind"])
    made = cast("BaseException", cls.__new__(cls))

    def value(held: Any) -> Any:
        if not isinstance(held, dict):
            return held
        marked = cast("dict[str, Any]", held)
        if marked["$is"] == "error":
            return _unpacked(urllib3, pool, conn, marked["error"])
        return pool if marked["$is"] == "pool" else conn

    made.args = tuple(value(one) for one in facts["args"])
    made.__dict__.update({name: value(one) for name, one in facts["attrs"].items()})
    if error.__cause__ is not None:
        made.__cause__ = _unpacked(urllib3, pool, conn, error.__cause__)
    return made
