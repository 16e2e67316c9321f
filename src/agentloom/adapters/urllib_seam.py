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

from agentloom.adapters.exchanges import (
    Classified,
    Marked,
    classified,
    comes_whole,
    exchange_of,
    host_work,
    tell,
)
from agentloom.adapters.http_client import answer_of, clean, parts_of, piece_bytes, values_of, whole_value
from agentloom.runtime.boundary import open_inline
from agentloom.runtime.calls import Whole
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
        head = cast("dict[str, Any] | None", next(stream, None))
    except OSError as error:
        if getattr(error, "agentloom_opening", False):
            del cast(Any, error).agentloom_opening
            raise URLError(error) from error
        raise
    if head is None:
        head = cast("dict[str, Any]", stream.value)
        tell(head, found)
        pieces = parts_of(head)
    else:
        pieces = _pieces(stream, found)
    made = answer_of(head, pieces, req.get_method(), reframed=False)
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
        if _is_short(answer, found):
            yield Whole(whole_value(answer, found))
        else:
            yield from Marked(values_of(answer, found))
    except (OSError, http.client.HTTPException) as error:
        made = clean(error)
        raise made  # noqa: B904 - its causes are its own
    finally:
        answer.close()


def _is_short(answer: Any, found: Classified) -> bool:
    """Whether the body is JSON that comes at once with the head, by its length: one piece, and no stream."""
    headers = answer.headers
    if not answer.length or answer.length > _SHORT or headers.get("content-encoding"):
        return False
    return comes_whole(headers.get("content-type"), found)


_SHORT = 1 << 16  # bytes


def _pieces(stream: Any, found: Classified) -> Iterator[bytes | None]:
    try:
        for value in stream:
            tell(value, found)
            yield piece_bytes(value)
    finally:
        stream.close()
