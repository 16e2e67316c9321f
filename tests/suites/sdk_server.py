"""A local server for the suites of OpenAI's and Anthropic's SDKs: every path of the SDK, with values of its types.

Their suites want a server made from the provider's OpenAPI document, which the source distributions do not hold. The
resources of the installed SDK say the same: which method and path gives which type. An answer is the smallest value of
that type: required fields, the first of a literal or a union.
"""

from __future__ import annotations

import ast
import datetime as dt
import importlib
import inspect
import json
import pkgutil
import re
import sys
import typing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pydantic

VERBS = ("get", "post", "put", "patch", "delete")
DEEPEST = 12


class Route(typing.NamedTuple):
    """A method and a path of the API, and what it answers."""

    verb: str
    path: re.Pattern[str]
    fixed: int  # characters of the path that are no parameter: the most exact route wins
    answer: Any
    query: str  # what the path itself says in its query, such as beta=true


def _path(node: ast.expr) -> str | None:
    """The path that a call is about, parameters as ``{name}``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "path_template":
        return _path(node.args[0])
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "{x}" for one in node.values)
    return None


def _route(call: ast.Call, names: dict[str, Any]) -> Route | None:
    """The route of ``self._post(path, cast_to=...)`` or ``self._get_api_list(path, page=..., model=...)``."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr.startswith("_") and call.args):
        return None
    verb, given = call.func.attr[1:], {one.arg: one.value for one in call.keywords}
    kind = given.get("cast_to")
    if verb == "get_api_list":
        kind, method = given.get("page"), given.get("method")
        verb = method.value if isinstance(method, ast.Constant) else "get"  # type: ignore[assignment]
    path = _path(call.args[0])
    if verb not in VERBS or kind is None or path is None:
        return None
    try:
        answer = eval(compile(ast.Expression(kind), "<type>", "eval"), names)
    except (NameError, TypeError, AttributeError):
        return None  # a type that the method chooses by its arguments
    path, _, query = path.partition("?")
    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
    return Route(verb.upper(), re.compile(pattern), len(re.sub(r"\{\w+\}", "", path)), answer, query)


def routes(package: str) -> list[Route]:
    """Every route of an installed SDK, the most exact first."""
    resources = importlib.import_module(f"{package}.resources")
    found: list[Route] = []
    for info in pkgutil.walk_packages(resources.__path__, f"{package}.resources."):
        module = importlib.import_module(info.name)
        calls = (one for one in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(one, ast.Call))
        found.extend(route for call in calls if (route := _route(call, vars(module))))
    return sorted(found, key=lambda one: (-one.fixed, not one.query))


def sample(kind: Any, depth: int = 0) -> Any:
    """The smallest JSON value of a type of an SDK."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, typing.TypeVar):
        return sample(kind.__bound__ or str, depth + 1)
    if type(kind).__name__ == "TypeAliasType":
        return sample(kind.__value__, depth)
    if origin is typing.Annotated:
        return sample(inner[0], depth)
    if origin is typing.Literal:
        return inner[0]
    if origin in (list, typing.Iterable):
        return [] if depth > DEEPEST else [sample(inner[0], depth + 1)]
    if origin is dict or kind is dict or kind is object or kind is Any:
        return {}
    if origin is not None and not isinstance(kind, type) and type(None) in inner:
        return None
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        return sample(inner[0], depth + 1)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return _model(kind, depth)
    plain = {str: "string", int: 0, float: 0.5, bool: True, dt.date: "2019-12-27"}
    return plain.get(kind, "2019-12-27T18:11:19.117Z" if kind is dt.datetime else None)


def _model(kind: type[pydantic.BaseModel], depth: int) -> dict[str, Any]:
    """Required fields; of a page also its items, which its class makes optional."""
    page = any(one.__name__ == "BasePage" for one in kind.__mro__)
    out = {}
    for name, field in kind.model_fields.items():
        if field.is_required() or (page and name == "data"):
            out[field.alias or name] = sample(field.annotation, depth + 1)
    return out


def answer(kind: Any, *, streamed: bool) -> tuple[str, bytes]:
    """Content type and body."""
    if streamed:
        return "text/event-stream", b"data: [DONE]\n\n"
    if kind is str:
        return "text/plain", b"string"
    if "Binary" in getattr(kind, "__name__", ""):
        return "application/octet-stream", b"\x00\x01binary"
    if kind is type(None):
        return "application/json", b"{}"
    return "application/json", json.dumps(sample(kind)).encode()


class Server(ThreadingHTTPServer):
    """Answers on loopback until it is left."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, package: str) -> None:
        self.routes = routes(package)
        self.missed: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """For ``TEST_API_BASE_URL``."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _answer(self) -> None:
        body = self._body()
        path, _, query = self.path.partition("?")
        streamed = b'"stream":true' in body.replace(b" ", b"") or b'name="stream"\r\n\r\ntrue' in body
        for route in self.server.routes:
            if route.verb == self.command and route.path.fullmatch(path) and route.query in query:
                kind, data = answer(route.answer, streamed=streamed)
                self._send(200, kind, data)
                return
        self.server.missed.add(f"{self.command} {path}")
        self._send(404, "application/json", b'{"error": {"message": "no such path"}}')

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - as http.server calls them

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "") == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: the tables say what matters."""


def main() -> None:
    """``python -m tests.suites.sdk_server openai``: prints the address and serves until standard input ends."""
    server = Server(sys.argv[1])
    print(server.url, flush=True)
    import threading

    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    for one in sorted(server.missed):
        print("missed", one, file=sys.stderr)


if __name__ == "__main__":
    main()
