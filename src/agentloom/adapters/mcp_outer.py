"""The real connection to an MCP server, on the loop around a run: what a session of the run only asks for.

One task there owns the transport and the SDK's own dispatcher from the first call to the last, so that cancel scopes
are entered and left by the same task, however many tasks of the run make calls.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from agentloom.runtime.scope import outside

__all__ = ["Connection", "Opener", "Question", "TransportFailed", "let_go_with", "renamed"]

_log = logging.getLogger("agentloom.mcp")

Opener = Callable[[AsyncExitStack, Callable[[Exception], Awaitable[None]]], Awaitable[Any]]
"""Enters what a connection needs and gives the SDK's dispatcher of it, which tells of what is no message."""


class TransportFailed(Exception):
    """The transport of a connection broke with ``errors``, as its task group collected them."""

    def __init__(self, errors: list[BaseException]) -> None:
        super().__init__(errors)
        self.errors = errors


_DEFAULTS = {
    "sampling/createMessage": "Sampling not supported",
    "elicitation/create": "Elicitation not supported",
    "roots/list": "List roots not supported",
}
_INVALID_REQUEST, _CLOSED = -32600, -32000
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_TURNS = 3  # of the loop, until all tasks of a transport that broke have heard of it


@dataclass(slots=True)
class Question:
    """A request to the server: ``params`` as the session made them, ``more`` what goes to the transport beside."""

    method: str
    params: dict[str, Any] | None
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    progress: bool = False


class Connection:
    """One connection. ``opener`` is called on the loop that performs; ``error`` makes the SDK's error of a code and a
    text. ``listens``: the session looks at notifications; ``answers``: it has callbacks for requests of the server."""

    def __init__(self, opener: Opener, error: Callable[..., Exception]) -> None:
        self._opener = opener
        self._error = error
        self._owner: asyncio.Task[None] | None = None
        self._closing: asyncio.Event | None = None
        self._dispatcher: Any = None
        self._broken = self._over = False
        self._streams: list[asyncio.Queue[dict[str, Any]]] = []
        self._held: deque[dict[str, Any]] = deque()
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self.listens = self.answers = False
        self.names: dict[str, str] = {}
        """What subscriptions are called in the trace, by the numbers that the SDK counts for the whole process."""
        self.handshake: list[tuple[str, Question]] = []
        """What made the session what it is, to be said again where a run goes on live."""

    # -- from the first call to the last ------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect. Raises what the transport raises."""
        if self._owner is not None:
            return
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        context = outside()
        self._owner = asyncio.get_running_loop().create_task(
            self._own(opened, self._closing), context=context
        )
        try:
            await opened
        except asyncio.CancelledError:
            self._owner.cancel()
            raise
        except BaseException:
            await asyncio.wait([self._owner])
            raise

    async def _own(self, opened: asyncio.Future[None], closing: asyncio.Event) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._dispatcher = await self._opener(stack, self.fault)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(self._dispatcher.run, self._on_request, self._on_notify, self._noticed)
                    opened.set_result(None)
                    try:
                        await closing.wait()
                    except asyncio.CancelledError:
                        self._broken = True  # by the transport's own task group: an error is on its way
                        raise
                    tasks.cancel_scope.cancel()
        except BaseException as error:
            self._broken = True
            if opened.done():
                raise
            if isinstance(error, asyncio.CancelledError):
                opened.cancel()
                raise
            opened.set_exception(error)

    async def _ready(self) -> None:
        """Connected, and with the handshake done: a run that goes on live after its recorded beginning begins here."""
        if self._over:
            raise self._error(_CLOSED, "Connection closed")
        if self._owner is not None:
            return
        await self.open()
        for kind, question in list(self.handshake):
            if kind == "request":
                await self._dispatcher.send_raw_request(question.method, question.params, question.more)
            else:
                await self._dispatcher.notify(question.method, question.params, question.more)

    async def close(self) -> None:
        """Disconnect and wait for it. Raises what the transport raises there."""
        owner, self._owner, self._over = self._owner, None, True
        if owner is None or self._closing is None:
            return
        self._closing.set()
        try:
            await asyncio.shield(owner)
        except asyncio.CancelledError:
            if not owner.cancelled():
                raise
        except BaseExceptionGroup as group:
            raise TransportFailed(list(group.exceptions)) from None

    async def _send(self, question: Question, more: Mapping[str, Any]) -> dict[str, Any]:
        """The raw result. Raises ``TransportFailed`` where the transport broke, not the server."""
        try:
            return cast(
                "dict[str, Any]",
                await self._dispatcher.send_raw_request(question.method, question.params, more),
            )
        except Exception:
            for _ in range(_TURNS):
                if self._broken:
                    await self.close()
                await asyncio.sleep(0)
            raise

    def abandon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody will close it: its run is gone."""
        if self._closing is not None and self._owner is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._closing.set)

    def number(self) -> str | None:
        """The number of the session, where the transport gives a function that says it."""
        said = getattr(self._dispatcher, "number", None)
        return None if said is None else cast("str | None", said())

    # -- what the run asks for ---------------------------------------------------------------------------------

    async def whole(self, question: Question) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The raw result, and the events that came in since the answer before, in their order."""
        await self._ready()
        result = await self._send(question, question.more)
        events, self._held = list(self._held), deque()
        return result, events

    async def events(self, question: Question) -> AsyncIterator[dict[str, Any]]:
        """What comes in until the answer is there, and then ``{"result": ...}``."""
        await self._ready()
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        while self._held:
            queue.put_nowait(self._held.popleft())
        self._streams.append(queue)
        asking = asyncio.ensure_future(self._ask(question, queue))
        try:
            while True:
                event = await queue.get()
                if not event:
                    break
                yield event
            yield {"result": await asking}
        finally:
            self._streams.remove(queue)
            while not queue.empty():  # left early: the next one gets them
                if event := queue.get_nowait():
                    self._held.append(event)
            if not asking.done():
                asking.cancel()
                await asyncio.wait([asking])

    async def _ask(self, question: Question, queue: asyncio.Queue[dict[str, Any]]) -> dict[str, Any]:
        more = dict(question.more)
        if question.progress:

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                queue.put_nowait({"progress": [progress, total, message]})

            more["on_progress"] = on_progress
        if more.pop("tokens", False):

            async def on_token(token: str) -> None:
                queue.put_nowait({"token": token})

            more["on_resumption_token"] = on_token
        try:
            return await self._send(question, more)
        finally:
            queue.put_nowait({})

    async def notify(self, question: Question) -> None:
        """Send a notification."""
        await self._ready()
        await self._dispatcher.notify(question.method, question.params, question.more)

    def answer(self, number: int, answer: dict[str, Any]) -> None:
        """Answer a request of the server's; one that it took back is not answered."""
        future = self._asked.pop(number, None)
        if future is not None and not future.done():
            future.set_result(answer)

    # -- what comes in -----------------------------------------------------------------------------------------

    def _put(self, event: dict[str, Any]) -> None:
        if self._streams:
            self._streams[0].put_nowait(event)
        else:
            self._held.append(event)

    def _noticed(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Every notification, in the order in which they came."""
        if self.listens and method != "notifications/cancelled":
            self._put({"notification": {"method": method, "params": renamed(params, self.names)}})
        return method != "notifications/cancelled"

    async def _on_notify(self, *_: Any) -> None:
        """All were looked at before."""

    async def _on_request(self, _: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if method == "ping":
            return {}
        if not self.answers:
            code, text = (
                (_INVALID_REQUEST, _DEFAULTS[method]) if method in _DEFAULTS else (-32601, "Method not found")
            )
            raise self._error(code, text)
        self._count += 1
        number = self._count
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": None if params is None else dict(params)}
        self._put({"request": asked})
        try:
            answer = await future
        finally:
            self._asked.pop(number, None)
        if "error" in answer:
            error = answer["error"]
            raise self._error(error["code"], error["message"], *([error["data"]] if "data" in error else []))
        return cast("dict[str, Any]", answer["result"])

    async def fault(self, error: Exception) -> None:
        """Something that is no message came in."""
        _log.debug("an MCP server sent what is no message: %s", error)
        if self.listens:
            self._put({"fault": str(error)})


def renamed(params: Mapping[str, Any] | None, names: Mapping[str, str]) -> dict[str, Any] | None:
    """The parameters of a notification, with the subscription that it is for by the name that ``names`` gives it."""
    if params is None:
        return None
    meta: Any = params.get("_meta")
    known: Mapping[str, Any] = cast(Any, meta) if isinstance(meta, Mapping) else {}
    name = known.get(_SUBSCRIPTION)
    if not isinstance(name, str) or name not in names:
        return dict(params)
    return {**params, "_meta": {**known, _SUBSCRIPTION: names[name]}}


def let_go_with(owner: object, connection: Connection) -> None:
    """Disconnect when ``owner`` is gone. Called on the loop that performs."""
    weakref.finalize(owner, connection.abandon, asyncio.get_running_loop())
