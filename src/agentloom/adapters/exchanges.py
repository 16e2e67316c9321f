"""What all seams of HTTP libraries share: a request about to be sent, and which host call it is.

A seam makes an `Exchange` of what its library is about to send and asks `classified` for the host call. Adapters of
APIs claim exchanges as their own with `claim`; what nobody claims is an ``http`` call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from agentloom.adapters.http_bodies import answer_fields, body_fields, plain_body
from agentloom.adapters.http_wire import EventReader, request_fields
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.profiles import plain_url
from agentloom.runtime.work import Work, doing, under_way

__all__ = [
    "Classified",
    "Classify",
    "Exchange",
    "Marked",
    "awaited_events",
    "bare_error",
    "chain_of",
    "claim",
    "classified",
    "comes_whole",
    "counted",
    "events_of",
    "exchange_of",
    "host_work",
    "http_call",
    "is_events",
    "observe",
    "piece_of",
    "tell",
    "whole_of",
]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request about to be sent. ``path`` is without the query; ``json`` is its body when that is a JSON object.
    ``piecewise``: the caller of the client reads the answer piece by piece."""

    method: str
    url: str
    path: str
    content_type: str | None
    body: bytes
    json: dict[str, Any] | None
    piecewise: bool = False

    @property
    def streamed(self) -> bool:
        """Whether the body asks for a stream of events."""
        return self.json is not None and self.json.get("stream") is True


Usage = Callable[[Any], "Mapping[str, int] | None"]


@dataclass(frozen=True, slots=True)
class Classified:
    """The host call that an exchange is. ``usage`` finds the token counts in a JSON answer, or in one event of a
    stream; ``told`` gets the same, for facts that are told when they change (`agentloom.adapters.drift`)."""

    spec: CallSpec
    usage: Usage | None = None
    told: Callable[[Any], None] | None = None


Classify = Callable[[Exchange], "Classified | None"]

_classifiers: list[Classify] = []
_observers: list[Callable[[Exchange], None]] = []


def claim(classify: Classify) -> None:
    """Have ``classify`` asked about each exchange of a run, after those that claimed before. It returns None for what
    is not its own."""
    if classify not in _classifiers:
        _classifiers.append(classify)


def observe(observer: Callable[[Exchange], None]) -> None:
    """Have ``observer`` called with each request of a run before its host call is made."""
    if observer not in _observers:
        _observers.append(observer)


def exchange_of(
    method: str,
    url: str,
    path: str,
    content_type: str | None,
    encoding: str | None,
    body: bytes,
    *,
    piecewise: bool = False,
) -> Exchange:
    """The exchange of a request with its whole body. ``encoding``: its content encoding."""
    body = plain_body(encoding, body)
    value = body_fields(content_type, body).get("json")
    json = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return Exchange(method, url, path, content_type, body, json, piecewise)


def http_call(exchange: Exchange, name: str) -> Classified:
    """An exchange as an ``http`` call of that name."""
    known = None if exchange.json is None else {"json": exchange.json}
    fields = request_fields(exchange.method, exchange.url, exchange.content_type, exchange.body, known)
    stream = exchange.streamed or exchange.piecewise
    return Classified(CallSpec("http", name, fields, profile="http/1", series=f"http:{name}", stream=stream))


def classified(exchange: Exchange) -> Classified:
    """The host call that ``exchange`` is."""
    for observer in _observers:
        observer(exchange)
    for classify in _classifiers:
        found = classify(exchange)
        if found is not None:
            return found
    return http_call(exchange, f"{exchange.method.upper()} {plain_url(exchange.url).partition('?')[0]}")


def whole_of(
    head: dict[str, Any], content_type: str | None, body: bytes, found: Classified
) -> dict[str, Any]:
    """The value of a whole answer."""
    return counted(head | answer_fields(content_type, body), found)


def counted(value: dict[str, Any], found: Classified) -> dict[str, Any]:
    """An answer, or an event of a stream, with the token counts that it tells (``usage``)."""
    usage = found.usage(value.get("json", value.get("data"))) if found.usage is not None else None
    return value | {"usage": dict(usage)} if usage else value


def is_events(content_type: str | None) -> bool:
    """Whether an answer is a stream of server-sent events."""
    return (content_type or "").lower().startswith("text/event-stream")


def events_of(
    pieces: Iterable[bytes], found: Classified, lost: type[BaseException]
) -> Iterator[dict[str, Any]]:
    """The events of a body that comes in ``pieces``. ``lost``: what is raised where the connection is lost; what came
    before that comes first."""
    reader = EventReader()
    try:
        for data in pieces:
            for event in reader.feed(data):
                yield counted(event, found)
    except lost:
        yield from (counted(event, found) for event in reader.finish())
        raise
    yield from (counted(event, found) for event in reader.finish())


async def awaited_events(
    pieces: AsyncIterable[bytes], found: Classified, lost: type[BaseException]
) -> AsyncGenerator[dict[str, Any]]:
    """As ``events_of``, for pieces that are awaited."""
    reader = EventReader()
    try:
        async for data in pieces:
            for event in reader.feed(data):
                yield counted(event, found)
    except lost:
        for event in reader.finish():
            yield counted(event, found)
        raise
    for event in reader.finish():
        yield counted(event, found)


def piece_of(content_type: str | None, data: bytes, found: Classified, *, whole: bool) -> dict[str, Any]:
    """One chunk of an answer that is no stream of events. ``whole``: it is all of the body."""
    body = answer_fields(content_type if whole else None, data)
    usage = counted(body, found).get("usage") if whole else None
    return {"body": body, "usage": usage} if usage else {"body": body}


def comes_whole(content_type: str | None, found: Classified) -> bool:
    """Whether an answer is kept in one piece: JSON, and whatever is no stream of events where one was asked for (an
    error, mostly)."""
    if is_events(content_type):
        return False
    kind = (content_type or "").partition(";")[0].strip().lower()
    return found.spec.type == "model" or kind == "application/json" or kind.endswith("+json")


def tell(value: Mapping[str, Any], found: Classified) -> None:
    """Have an answer, an event or a piece looked at for facts that are told when they change."""
    if found.told is not None:
        found.told(value["body"].get("json") if "body" in value else value.get("json"))


_MARKED: AbstractContextManager[object] = nullcontext()


def host_work() -> AbstractContextManager[object]:
    """A block of host work, as the source of a run has marked it already, or as nobody has."""
    return doing(Work("http")) if under_way() is None else _MARKED


class Marked:
    """What a sync request gives piece by piece, as an iterator whose every step counts as host work."""

    def __init__(self, inner: Iterator[object]) -> None:
        self._inner = inner

    def __iter__(self) -> Marked:
        return self

    def __next__(self) -> object:
        with host_work():
            return next(self._inner)

    def close(self) -> None:
        with host_work():
            cast(Any, self._inner).close()


_CHAIN = 8  # errors below one another


def chain_of(error: BaseException, kept: Callable[[BaseException], BaseException | None]) -> BaseException:
    """``error`` as it can be written down, with its causes: made anew by ``kept``, without the sockets, requests and
    credentials that such errors hold. A cause for which ``kept`` gives None ends the chain."""
    made = kept(error)
    if made is None:
        made = OSError(str(error))
    below, at = error, made
    for _ in range(_CHAIN):
        at.__suppress_context__ = below.__suppress_context__
        if below.__cause__ is None:
            break
        below = below.__cause__
        cause = kept(below)
        if cause is None:
            break
        at.__cause__ = cause
        at = cause
    return made


def bare_error(error: BaseException, modules: Iterable[str] = ()) -> BaseException | None:
    """A copy of an error with its text as its only argument; an ``OSError`` keeps its number. None for one that does
    not belong to the standard library or to one of ``modules``, or whose class does not make that text of it."""
    cls = type(error)
    if (
        isinstance(error, OSError)
        and error.errno is not None
        and cls.__module__ in ("builtins", "socket", "ssl")
    ):
        made: BaseException = cls(error.errno, error.strerror)
        return made if str(made) == str(error) else OSError(error.errno, error.strerror)
    if cls.__module__.partition(".")[0] not in ("builtins", "ssl", "socket", "http", *modules):
        return None
    made = cls.__new__(cls, str(error))
    made.args = (str(error),) if error.args else ()
    plain = {name: one for name, one in vars(error).items() if isinstance(one, _PLAIN)}
    made.__dict__.update(plain)
    return made if str(made) == str(error) else None


_PLAIN = (str, int, float, bool, type(None))
