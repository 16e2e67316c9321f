"""aiohttp's errors without the sockets, addresses and messages that they hold, and with them again in the run."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, cast

from agentloom.adapters.exchanges import bare_error, chain_of

__all__ = ["cleaned", "restored"]

_KIND = "agentloom_kind"
"""Names, on a recorded ``OSError``, which error of a connector it was: those hold the connector's own key."""


@contextlib.contextmanager
def cleaned(aiohttp: Any) -> Generator[None]:
    """Errors of aiohttp leave the block as they can be written down."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError) as error:
        made = chain_of(error, lambda one: _kept(aiohttp, one))
        raise made  # noqa: B904 - its causes are its own


def _kept(aiohttp: Any, raised: BaseException) -> BaseException | None:
    error = cast(Any, raised)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        below: Any = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
        number = getattr(below, "errno", None)
        known = type(below).__module__ in ("builtins", "socket")
        kind = cast(Any, type(below) if known else OSError)
        made: OSError = kind(number, getattr(below, "strerror", None) or str(below))
        setattr(made, _KIND, type(error).__name__)
        return made
    if isinstance(error, aiohttp.ClientResponseError):
        broken: BaseException = aiohttp.http_exceptions.HttpProcessingError(
            code=error.status, message=error.message
        )
        return broken
    if isinstance(error, aiohttp.ServerDisconnectedError):
        message: Any = error.message
        gone: BaseException = type(error)(message if isinstance(message, str) else None)
        return gone
    if isinstance(raised, OSError) and raised.errno is not None:
        return type(raised)(raised.errno, raised.strerror)
    return bare_error(raised, ("aiohttp", "asyncio"))


@contextlib.contextmanager
def restored(aiohttp: Any, req: Any) -> Generator[None]:
    """Recorded errors leave the block as aiohttp raises them."""
    try:
        yield
    except OSError as error:
        kind = getattr(error, _KIND, None)
        if kind is None:
            raise
        below: Any = type(error)(error.errno, error.strerror)
        raise getattr(aiohttp, kind)(req.connection_key, below) from below
