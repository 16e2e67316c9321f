"""From the parsed document of a container to exchanges: cassettes, HAR, nock, pairs, frames of a websocket.

Which container a document is, is told by its fields (`container_of`). What a field may hold differs from writer to
writer; each reader here takes all the forms that writers of its container are known to produce.
"""

from __future__ import annotations

import base64
import binascii
import json
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from agentloom.errors import TrafficError
from agentloom.testing import traffic_bare
from agentloom.testing.exchanges import Exchange, Frame, Headers, decoded, find_header, is_stream, media_type

_MOST = 64 * 1024 * 1024  # characters of one body

__all__ = ["FORMS", "Found", "container_of"]

Found = Exchange | Frame | str
"""What a reader gives: an exchange, a frame, or in words why something gives neither."""


class _Odd(Exception):
    """A field that is not what its container says; the message names the field."""


def container_of(whole: object) -> str | None:
    """The container that a parsed document is, by the names of `FORMS`; None for anything else."""
    if isinstance(whole, list):
        return (
            "nock"
            if whole and all(_has(item, "scope", "path") for item in cast("list[object]", whole))
            else None
        )
    if not isinstance(whole, dict):
        return None
    said = cast("dict[str, Any]", whole)
    if isinstance(said.get("interactions"), list):
        items = cast("list[object]", said["interactions"])
        return "ws" if items and all(_has(item, "direction") for item in items) else "vcr"
    if isinstance(said.get("http_interactions"), list):
        return "vcr"
    if isinstance(said.get("requests"), list) and isinstance(said.get("responses"), list):
        return "vcr2"
    if isinstance(said.get("log"), dict) and isinstance(said["log"].get("entries"), list):
        return "har"
    if isinstance(said.get("request"), dict) and isinstance(said.get("response"), dict):
        return "llamastack" if _has_objects(said["response"]) else "ddvcr"
    return None


def _has_objects(response: Mapping[str, Any]) -> bool:
    body: object = response.get("body")
    items = cast("list[object]", body) if isinstance(body, list) else [body]
    return "is_streaming" in response or (bool(items) and _has(items[0], "__data__"))


def _has(item: object, *names: str) -> bool:
    return isinstance(item, dict) and all(name in item for name in names)


def _vcr(whole: Any, name: str) -> Iterator[Found]:
    key = "interactions" if isinstance(whole.get("interactions"), list) else "http_interactions"
    yield from _each(whole[key], name, _pair)


def _vcr2(whole: Any, name: str) -> Iterator[Found]:
    requests, responses = whole["requests"], whole["responses"]
    pairs = [{"request": one, "response": two} for one, two in zip(requests, responses, strict=False)]
    yield from _each(pairs, name, _pair)
    if len(requests) != len(responses):
        yield f"{len(requests)} requests and {len(responses)} responses: those without a counterpart are left out"


def _one(whole: Any, name: str) -> Iterator[Found]:
    yield from _each([whole], name, _pair)


def _har(whole: Any, name: str) -> Iterator[Found]:
    yield from _each(whole["log"]["entries"], name, _har_entry)


def _nock(whole: Any, name: str) -> Iterator[Found]:
    yield from _each(whole, name, _nock_entry)


def _llamastack(whole: Any, name: str) -> Iterator[Found]:
    yield from _each([whole], name, _objects)


def _frames(whole: Any, name: str) -> Iterator[Found]:
    items: list[dict[str, Any]] = whole["interactions"]
    for number, item in enumerate(items):
        way = item["direction"]
        if way in ("sent", "received"):
            yield Frame(way, item.get("data"))
        else:
            yield f"{name}#{number}: direction {reprlib.repr(way)} is neither sent nor received"


FORMS: dict[str, Callable[[Any, str], Iterator[Found]]] = {
    "vcr": _vcr,
    "vcr2": _vcr2,
    "har": _har,
    "nock": _nock,
    "ddvcr": _one,
    "llamastack": _llamastack,
    "ws": _frames,
}
"""The readers by container; each takes the parsed document and the name for its exchanges."""


def _each(
    items: Iterable[Any], name: str, read: Callable[[Mapping[str, Any], str], Found]
) -> Iterator[Found]:
    """Every item through ``read``; TrafficError names the one that is not what its container says."""
    for number, item in enumerate(items):
        label = f"{name}#{number}"
        try:
            yield read(_mapping(item, "the exchange"), label)
        except _Odd as odd:
            raise TrafficError(
                f"{name}: exchange {number}: {odd}",
                hint="the file is damaged, or of another form: say which with read_traffic(path, container=...)",
                file=name,
                exchange=number,
            ) from None


def _pair(item: Mapping[str, Any], name: str) -> Found:
    """``request`` and ``response`` as VCR.py, Ruby VCR, Betamax and Datadog's test agent write them."""
    if "request" not in item and _has(item.get("request_sample"), "raw"):
        return f"{name}: a message of gRPC, no HTTP exchange"
    request = _mapping(item.get("request"), "request")
    if item.get("response") is None:
        return f"{name}: no response was recorded"
    response = _mapping(item["response"], "response")
    url = request.get("uri", request.get("url", ""))
    asked = _headers(request.get("headers"), "request.headers")
    given = _headers(response.get("headers"), "response.headers")
    sent = _body(request, "request") if _known(request, ("body", "parsed_body")) else None
    body = _body(response, "response") or b""
    status = response.get("status", response.get("status_code", 200))
    return _exchange(name, request.get("method"), url, asked, sent, status, given, body)


def _known(part: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    return any(name in part for name in names)


def _har_entry(item: Mapping[str, Any], name: str) -> Found:
    """http://www.softwareishard.com/blog/har-12-spec/ ; Polly keeps encoded bodies as a list of base64 pieces."""
    request, response = _mapping(item.get("request"), "request"), _mapping(item.get("response"), "response")
    if not response.get("status"):
        return f"{name}: the request was aborted, there is no answer"
    post: Mapping[str, Any] = _mapping(request.get("postData") or {}, "request.postData")
    text = post.get("text", "")
    sent = _bytes(text, "request.postData.text")
    if post.get("encoding") == "base64" or post.get("_encoding") == "base64":
        sent = _unbase64(text, "request.postData.text")
    content = _mapping(response.get("content") or {}, "response.content")
    body = _har_body(content)
    given = _headers(response.get("headers"), "response.headers")
    if content.get("mimeType") and find_header(given, "content-type") is None:
        given = (*given, ("content-type", str(content["mimeType"])))
    asked = _headers(request.get("headers"), "request.headers")
    url, status = request.get("url"), response["status"]
    return _exchange(name, request.get("method"), url, asked, sent, status, given, body)


def _har_body(content: Mapping[str, Any]) -> bytes:
    text = content.get("text", "")
    pieces: object = None
    if isinstance(text, str) and text.startswith("["):
        try:
            pieces = json.loads(text)
        except (ValueError, RecursionError):
            pieces = None
    if content.get("encoding") == "base64":
        if isinstance(pieces, list):
            return b"".join(_unbase64(one, "response.content.text") for one in cast("list[object]", pieces))
        return _unbase64(text, "response.content.text")
    return _bytes(text, "response.content.text")


def _nock_entry(item: Mapping[str, Any], name: str) -> Found:
    """https://github.com/nock/nock#recording: JSON bodies are parsed, encoded and binary ones are in hex."""
    scope, path = item.get("scope"), item.get("path")
    if not isinstance(scope, str) or not isinstance(path, str):
        raise _Odd("scope and path have to be text")
    given = _headers(item.get("rawHeaders") or item.get("headers"), "rawHeaders")
    asked = _headers(item.get("reqheaders"), "reqheaders")
    sent, said = item.get("body", ""), item.get("response", "")
    body = _nock_body(said, given, binary=bool(item.get("responseIsBinary")))
    status = item.get("status", 200)
    return _exchange(name, item.get("method"), scope + path, asked, _bytes(sent, "body"), status, given, body)


def _nock_body(said: object, given: Headers, *, binary: bool) -> bytes:
    if isinstance(said, list) and find_header(given, "content-encoding"):
        return b"".join(_unhex(one, "response") for one in cast("list[object]", said))
    if binary and isinstance(said, str):
        return _unhex(said, "response")
    return _bytes(cast("object", said), "response")  # type: ignore[redundant-cast]


def _objects(item: Mapping[str, Any], name: str) -> Found:
    """SDK objects (Llama Stack): each has its type and its data; a list of them were the events of a stream."""
    request, response = _mapping(item.get("request"), "request"), _mapping(item.get("response"), "response")
    if response.get("is_exception") or response.get("body") is None:
        return f"{name}: an exception of the SDK was recorded, no answer"
    if "method" not in request and "tool_name" in request:
        return f"{name}: a call of the tool {reprlib.repr(request['tool_name'])}, no HTTP exchange"
    body: Any = response["body"]
    asked = _headers(request.get("headers"), "request.headers")
    # The recorder puts an endpoint that has the version behind a base address that has it too.
    url = str(request.get("url") or "").replace("/v1/v1/", "/v1/")
    sent = None if request.get("body") is None else _bytes(_sdk_body(request["body"]), "request.body")
    if isinstance(body, list) and all(isinstance(one, str) for one in cast("list[object]", body)):
        lines = "\n".join(cast("list[str]", body)) + "\n"  # of a stream that no SDK has read
        answer = traffic_bare.body_of(lines.encode("utf-8", "surrogatepass"), name)
    elif isinstance(body, list):
        events = [_data(one, f"response.body[{n}]") for n, one in enumerate(cast("list[object]", body))]
        answer = traffic_bare.stream(events, name)
    else:
        said = _bytes(_data(body, "response.body"), "response.body")
        answer = traffic_bare.body_of(said, name)
    return _exchange(name, request.get("method"), url, asked, sent, 200, answer.headers, answer.body)


def _sdk_body(arguments: object) -> object:
    """The body that an SDK made of its arguments: what ``extra_body`` held is in it, what steers the call is not."""
    if not isinstance(arguments, dict):
        return arguments
    said = dict(cast("dict[str, Any]", arguments))
    extra: object = said.pop("extra_body", None)
    for name in ("extra_headers", "extra_query", "timeout"):
        said.pop(name, None)
    return said | cast("dict[str, Any]", extra) if isinstance(extra, dict) else said


def _data(value: object, where: str) -> dict[str, Any]:
    said = _mapping(value, where)
    return dict(_mapping(said.get("__data__", said), where))


def _exchange(
    name: str,
    method: object,
    url: object,
    asked: Headers,
    sent: bytes | None,
    status: object,
    given: Headers,
    body: bytes,
) -> Exchange:
    if isinstance(status, dict):
        status = cast("dict[str, object]", status).get("code")
    try:
        code = int(cast("Any", status))
    except (TypeError, ValueError):
        raise _Odd(f"the status {reprlib.repr(status)} is no number") from None
    if not 200 <= code <= 599:
        raise _Odd(f"an answer of status {code}")
    if not isinstance(method, str) or not method.isalpha():
        raise _Odd(f"the method is {reprlib.repr(method)}")
    try:
        urlsplit(url if isinstance(url, str) else "")
    except ValueError as error:
        raise _Odd(f"the address is none: {error}") from None
    place = url if isinstance(url, str) and url.startswith(("http://", "https://", "/")) else ""
    streamed = is_stream(media_type(given, decoded(body, given)))
    return Exchange(name, method.upper(), place, asked, sent, code, given, body, streamed)


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Odd(f"{where} is {type(value).__name__}, not a mapping")
    return cast("dict[str, Any]", value)


def _headers(value: object, where: str) -> Headers:
    """A mapping (values: a text or a list), a list of name and value, or nock's flat list of names and values."""
    if value is None:
        return ()
    pairs: list[tuple[object, object]] = []
    if isinstance(value, dict):
        pairs = list(cast("dict[object, object]", value).items())
    elif isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[object]", value)):
        pairs = [(one.get("name"), one.get("value")) for one in cast("list[dict[str, object]]", value)]
    elif isinstance(value, list) and all(isinstance(one, str) for one in cast("list[object]", value)):
        flat = cast("list[str]", value)
        pairs = list(zip(flat[::2], flat[1::2], strict=False))
    else:
        raise _Odd(f"{where} is neither a mapping nor a list of names and values")
    made: list[tuple[str, str]] = []
    for name, said in pairs:
        values = cast("list[object]", said) if isinstance(said, list | tuple) else [said]
        made += [(_words(name), _words(one)) for one in values]
    return tuple(made)


def _words(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict | list | tuple):
        raise _Odd(f"a header is {type(cast('object', value)).__name__}, not text")
    return str(value)


def _body(part: Mapping[str, Any], where: str) -> bytes | None:
    """The body of a request or response, in every form that writers of cassettes have used."""
    if "parsed_body" in part and part.get("body") is None:
        return _json(part["parsed_body"], f"{where}.parsed_body")
    body: Any = part.get("body", part.get("content"))
    if isinstance(body, dict):
        said = cast("dict[str, Any]", body)
        if not set(said) - {"string", "encoding", "base64_string"}:
            if said.get("base64_string") is not None:
                return _unbase64(said["base64_string"], f"{where}.body.base64_string")
            return _bytes(said.get("string"), f"{where}.body.string")
    return _bytes(cast("object", body), f"{where}.body")


def _bytes(value: object, where: str) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if value.startswith("base64:"):  # as Datadog's test agent marks binary bodies
            return _unbase64(value[7:], where)
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict | list):
        return _json(cast("object", value), where)
    raise _Odd(f"{where} is {type(value).__name__}")


def _json(value: object, where: str) -> bytes:
    """``value`` as JSON. It may have been put together of aliases, so that it is larger than its file."""
    left, todo = _MOST, [value]
    while todo:
        one = todo.pop()
        left -= 16 + (len(one) if isinstance(one, str) else 0)
        if left < 0:
            raise _Odd(f"{where} is too large when its aliases are written out")
        if isinstance(one, list | tuple):
            todo += cast("list[object]", one)
        elif isinstance(one, dict):
            todo += cast("dict[object, object]", one).values()
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise _Odd(f"{where} is no JSON: {error}") from None


def _unbase64(value: object, where: str) -> bytes:
    try:
        return base64.b64decode("".join(str(value).split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _Odd(f"{where} is no base64: {error}") from None


def _unhex(value: object, where: str) -> bytes:
    try:
        return bytes.fromhex(str(value))
    except ValueError as error:
        raise _Odd(f"{where} is no hexadecimal text: {error}") from None
