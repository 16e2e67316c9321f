"""The seam of ``urllib.request``: each request that a handler opens is one host call.

Redirects, authentication, cookies and proxies are handlers of their own and stay as they are.
"""

from __future__ import annotations

import functools
import http.client
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast
from urllib.error import URLError

from agentloom.adapters.exchanges import Classified, Marked, classified, exchange_of, host_work, tell
from agentloom.adapters.http_client import answer_of, clean, piece_bytes, values_of
from agentloom.runtime.boundary import open_inline
from agentloom.runtime.passed import passes

__all__ = ["install"]


def install(module: ModuleType) -> None:
    """Patch the handlers of ``urllib.request``. Idempotent; outside a run they open as before."""
    cls = cast(Any, module).AbstractHTTPHandler
    if getattr(cls, "agentloom_original", None) is not None:
        return
    original = cls.agentloom_original = cls.do_open

    @functools.wraps(original)
    def do_open(self: Any, http_class: Any, req: Any, **options: Any) -> Any:
        if not req.host or passes("urllib.request", req.host):
            return original(self, http_class, req, **options)
        return _send(functools.partial(original, self, http_class, req, **options), req)

    cls.do_open = do_open


def _send(perform: Any, req: Any) -> Any:
    data = req.data
    if data is not None and not isinstance(data, bytes):
        parts = iter(functools.partial(data.read, 1 << 16), b"") if hasattr(data, "read") else data
        req.data = data = b"".join(parts)
    kind, encoding = req.get_header("Content-type"), req.get_header("Content-encoding")
    url = req.full_url.partition("#")[0]
    path = req.selector.partition("?")[0]
    exchange = exchange_of(req.get_method(), url, path, kind, encoding, data or b"", piecewise=True)
    found = classified(exchange)
    spec = found.spec
    spec.stream = True  # who opens a URL always reads by itself
    stream = open_inline(spec, lambda _: _values(perform, found))
    try:
        head = cast("dict[str, Any]", next(stream))
    except OSError as error:
        if getattr(error, "agentloom_opening", False):
            del cast(Any, error).agentloom_opening
            raise URLError(error) from error
        raise
    made = answer_of(head, _pieces(stream, found), req.get_method(), reframed=False)
    answer = cast(Any, made)
    answer.url = req.get_full_url()
    answer.msg = made.reason
    return made


def _values(perform: Any, found: Classified) -> Iterator[object]:
    try:
        with host_work():
            answer = perform()
    except URLError as error:
        made = clean(error.reason) if isinstance(error.reason, BaseException) else OSError(str(error.reason))
        cast(Any, made).agentloom_opening = True
        raise made from None
    except (OSError, http.client.HTTPException) as error:
        made = clean(error)
        raise made  # noqa: B904 - its causes are its own
    try:
        yield from Marked(values_of(answer, found))
    except (OSError, http.client.HTTPException) as error:
        made = clean(error)
        raise made  # noqa: B904 - its causes are its own
    finally:
        answer.close()


def _pieces(stream: Any, found: Classified) -> Iterator[bytes | None]:
    try:
        for value in stream:
            tell(value, found)
            yield piece_bytes(value)
    finally:
        stream.close()
