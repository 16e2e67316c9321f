"""The seam of urllib3, and so of requests and botocore: each try of a request is one host call.

What a pool does around it (retries and their waits, redirects, its own connections) stays as it is; what is replaced is
the one method that sends a request over a connection. On replay no connection is ever opened.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.exchanges import Classified, Marked, classified, exchange_of, host_work, tell
from agentloom.adapters.http_client import answer_of, parts_of, piece_bytes, values_of, whole_value
from agentloom.adapters.releases import needed
from agentloom.adapters.urllib3_errors import cleaned, restored
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_inline, open_inline
from agentloom.runtime.contexts import put
from agentloom.runtime.passed import passes
from agentloom.runtime.scope import current

__all__ = ["install", "install_requests"]

_piecewise: ContextVar[bool | None] = ContextVar("agentloom.requests.piecewise", default=None)


def install(module: ModuleType) -> None:
    """Patch the pools of ``urllib3``. Idempotent; outside a run they send as before. Raises ``NotSupported`` when this
    release does not have the methods to patch."""
    urllib3 = cast(Any, module)
    if getattr(urllib3, "__agentloom__", False):
        return
    for pool in ("HTTPConnectionPool", "HTTPSConnectionPool"):
        for name in ("_make_request", "_prepare_proxy"):
            needed(module, f"connectionpool.{pool}", name)
    pools = urllib3.connectionpool
    original = pools.HTTPConnectionPool._make_request
    if (
        "response_conn" not in inspect.signature(original).parameters
    ):  # before 2.0 it gave what is below a response
        raise NotSupported(
            f"requests of urllib3 {urllib3.__version__} cannot be recorded: _make_request is another one",
            hint="install a release of urllib3 that agentloom's tests name",
        )

    @functools.wraps(original)
    def _make_request(self: Any, conn: Any, method: str, url: str, **options: Any) -> Any:
        if passes("urllib3", self.host):
            return original(self, conn, method, url, **options)
        return _Sending(urllib3, original, self, conn, method, url, options).send()

    pools.HTTPConnectionPool._make_request = _make_request
    _patch_proxy(pools.HTTPConnectionPool)
    _patch_proxy(pools.HTTPSConnectionPool)
    urllib3.__agentloom__ = True


def _patch_proxy(cls: Any) -> None:
    """A tunnel through a proxy is opened with the first request that needs it, not before."""
    if "_prepare_proxy" not in vars(cls):
        return
    original = cls._prepare_proxy

    @functools.wraps(original)
    def _prepare_proxy(self: Any, conn: Any) -> None:
        if current() is None:
            original(self, conn)
        else:
            conn.agentloom_prepare = functools.partial(original, self, conn)

    cls._prepare_proxy = _prepare_proxy


def install_requests(module: ModuleType) -> None:
    """Patch ``requests``: it tells urllib3 nothing of who reads the answer piece by piece (``stream=True``)."""
    cls = cast(Any, module).adapters.HTTPAdapter
    if getattr(cls, "agentloom_original", None) is not None:
        return
    original = cls.agentloom_original = cls.send

    @functools.wraps(original)
    def send(self: Any, request: Any, stream: bool = False, *args: Any, **kwargs: Any) -> Any:
        token = put(_piecewise, bool(stream))
        try:
            return original(self, request, stream, *args, **kwargs)
        finally:
            _piecewise.reset(token)

    cls.send = send


class _Sending:
    """One try of one request."""

    def __init__(
        self,
        urllib3: Any,
        original: Any,
        pool: Any,
        conn: Any,
        method: str,
        url: str,
        options: dict[str, Any],
    ) -> None:
        self._urllib3, self._original = urllib3, original
        self._pool, self._conn, self._method, self._url = pool, conn, method, url
        self._options = options

    def send(self) -> Any:
        pool, options = self._pool, self._options
        options["body"] = body = _bytes_of(options.get("body"))
        pool.num_requests += 1
        headers: Mapping[str, str] = options.get("headers") or {}
        lower = {str(name).lower(): str(value) for name, value in headers.items()}
        told = _piecewise.get()
        exchange = exchange_of(
            self._method,
            self._address(),
            self._url.partition("?")[0],
            lower.get("content-type"),
            lower.get("content-encoding"),
            body or b"",
            piecewise=not options.get("preload_content", True) if told is None else told,
        )
        found = classified(exchange)
        with restored(self._urllib3, pool, self._conn):
            if found.spec.stream:
                stream = open_inline(found.spec, lambda _: Marked(self._values(found)))
                head = cast("dict[str, Any]", next(stream))
                return self._answer(head, self._pieces(stream, found))
            value = cast("dict[str, Any]", call_inline(found.spec, lambda _: self._whole(found)))
            tell(value, found)
            return self._answer(value, parts_of(value))

    def _address(self) -> str:
        if not self._url.startswith("/"):
            return self._url  # through a proxy
        pool = self._pool
        usual = {"http": 80, "https": 443}.get(pool.scheme)
        port = "" if pool.port is None or pool.port == usual else f":{pool.port}"
        host = f"[{pool.host}]" if ":" in pool.host else pool.host
        return f"{pool.scheme}://{host}{port}{self._url}"

    # -- outside the run -----------------------------------------------------------------------------------------

    def _real(self) -> Any:
        """The answer of the server, its body still to be read."""
        prepare = self._conn.__dict__.pop("agentloom_prepare", None)
        if prepare is not None and self._conn.is_closed:
            prepare()
        self._pool.num_requests -= 1  # which the method counts
        options = self._options | {"preload_content": False, "response_conn": None}
        return self._original(self._pool, self._conn, self._method, self._url, **options)

    def _whole(self, found: Classified) -> dict[str, Any]:
        with host_work(), cleaned(self._urllib3, self._pool, self._conn):
            answer = self._real()
            value = whole_value(answer._original_response, found)
            answer.close()
            return value

    def _values(self, found: Classified) -> Iterator[object]:
        with cleaned(self._urllib3, self._pool, self._conn):
            answer = self._real()
            try:
                yield from values_of(answer._original_response, found)
            finally:
                answer.close()

    # -- the answer ----------------------------------------------------------------------------------------------

    def _pieces(self, stream: Any, found: Classified) -> Iterator[bytes | None]:
        try:
            with restored(self._urllib3, self._pool, self._conn):
                for value in stream:
                    tell(value, found)
                    if "cut" in value and value["cut"] is not None:
                        raise self._urllib3.exceptions.IncompleteRead(0, value["cut"])
                    yield piece_bytes(value)
        finally:
            stream.close()

    def _answer(self, head: Mapping[str, Any], pieces: Iterator[bytes | None]) -> Any:
        options = self._options
        below = answer_of(head, pieces, self._method, reframed=True)
        version = str(head.get("version", "HTTP/1.1"))
        given: dict[str, Any] = {
            "body": below,
            "headers": self._urllib3.HTTPHeaderDict(below.headers.items()),
            "status": below.status,
            "version": below.version,
            "version_string": version,
            "reason": below.reason,
            "preload_content": False,
            "decode_content": options.get("decode_content", True),
            "original_response": below,
            "enforce_content_length": False,
            "request_method": self._method,
            "request_url": self._url,
            "retries": options.get("retries"),
            "pool": self._pool,
            "connection": options.get("response_conn"),
        }
        cls = self._urllib3.HTTPResponse
        takes = _parameters(cls)
        made = cls(**{name: value for name, value in given.items() if name in takes})
        if not head.get("encoded"):
            made._decoder = _Plain()  # the headers may tell of a compression that is gone
        if options.get("preload_content", True):
            made._body = made.read(decode_content=given["decode_content"])
        return made


class _Plain:
    """The decoder of a body that is plain already."""

    has_unconsumed_tail = False

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


@functools.cache
def _parameters(cls: Any) -> frozenset[str]:
    return frozenset(inspect.signature(cls.__init__).parameters)


def _bytes_of(body: Any) -> bytes | None:
    """A body of any kind that urllib3 takes."""
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, bytearray | memoryview):
        return bytes(cast(Any, body))
    if hasattr(body, "read"):
        body = iter(functools.partial(body.read, 1 << 16), type(body.read(0))())
    return b"".join(one.encode("utf-8") if isinstance(one, str) else bytes(one) for one in body)
