"""ASGI: one run for each request of a service.

Pure ASGI, nothing of a framework: responses stream as ever, background tasks and exceptions are those of the
application, websockets and lifespan pass by. The application stays on its own event loop, where its pools live; what
it records inside (``await record(...)``, ``wrap``) gets the deterministic loop, in the same run.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import types
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from dataclasses import replace
from typing import Any, cast

from agentloom.adapters.asgi_request import headers_of, kept_request, scope_of
from agentloom.api.recording_block import RecordedBlock
from agentloom.api.recording_mode import ready, replaying
from agentloom.api.recording_target import target_of_block
from agentloom.api.recording_worker import Service
from agentloom.api.trace import Trace
from agentloom.errors import DivergenceError, LoomError, TargetError
from agentloom.format.unkept import unkept_in
from agentloom.runtime.left_out import left_out
from agentloom.runtime.scope import current

__all__ = ["RecordedApp", "is_asgi"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_KEPT_BODY = 64 << 10
"""Bytes of a request's or a response's body that the trace holds; of a longer one its length and digest."""
_GONE = "went away before its answer was complete"


def is_asgi(target: object) -> bool:
    """Whether ``target`` looks like an ASGI application: called with scope, receive and send."""
    call = target if isinstance(target, types.FunctionType) else getattr(type(target), "__call__", None)  # noqa: B004
    code = getattr(call, "__code__", None)
    return code is not None and code.co_varnames[: code.co_argcount][-3:] == ("scope", "receive", "send")


class _Body:
    """A body that passes by: the first bytes, the length, the digest."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._length = 0
        self._digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self._length += len(data)
        self._digest.update(data)
        if self._length <= _KEPT_BODY:
            self._kept += data

    def facts(self) -> object:
        """Text where it is text, bytes, or what is known of a long one."""
        if self._length > _KEPT_BODY:
            return {"bytes": self._length, "sha256": self._digest.hexdigest()}
        data = bytes(self._kept)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return data


class RecordedApp:
    """``app`` with each HTTP request as a run. Everything else is the application's own, attributes too."""

    def __init__(self, app: Any, service: Service) -> None:
        self.app = app
        self.service = service

    def __getattr__(self, name: str) -> Any:
        return getattr(self.app, name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" and not await self._may_start(receive, send):
            return
        if scope["type"] != "http" or current() is not None:
            await self.app(scope, receive, send)
            return
        service = self.service
        options = service.options(scope)
        if not service.chosen(options, _id_of(scope)):
            with left_out():
                await self.app(scope, receive, send)
            return
        request, secret = kept_request(scope)
        name = service.named(f"{scope['method']} {scope['path']}", scope)
        exchange = _Exchange(scope, receive, send)
        target = target_of_block(name, {"request": request})
        run = RecordedBlock(target, replace(options, secrets=secret), service.store, service.keep)
        await self._within(run, scope, exchange)

    async def _within(self, run: RecordedBlock, scope: Scope, exchange: _Exchange) -> None:
        """The application's work, in its run."""
        async with run:
            try:
                await self.app(scope, exchange.receive, exchange.send)
            finally:
                run.output = exchange.answer()
                left = exchange.left or {"client": _GONE} in run.replayed_notes
                note: dict[str, Any] = {"request body": exchange.asked.facts()}
                run.end_as(
                    failed=exchange.status >= 500,
                    error=asyncio.CancelledError() if left else None,
                    notes=[note, {"client": _GONE}] if left else [note],
                )

    async def _may_start(self, receive: Receive, send: Send) -> bool:
        """What would fail every request fails the start of the server, before there is one."""
        try:
            ready(self.service.store)
        except LoomError as error:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return False
        return True

    async def replay_request(self, trace: Trace, *, check: bool = True) -> Any:
        """Replay the run of a request with the application as it is now, nothing is performed; the report, also of one
        that failed. Raises ``DivergenceError`` with the report where it differs, unless ``check`` is False: then it is
        returned whatever it says. ``TargetError`` for a trace of something else."""
        request = trace.input["kwargs"].get("request")
        body = next((note["request body"] for note in trace.notes if "request body" in note), None)
        if not isinstance(request, dict) or not isinstance(body, str | bytes):
            raise TargetError(
                f"run {trace.run_id} of {trace.name} does not hold a whole request",
                hint=f"requests with a body of up to {_KEPT_BODY} bytes are kept",
            )
        gone = asyncio.Event()
        asked = iter([{"type": "http.request", "body": body.encode() if isinstance(body, str) else body}])

        async def receive() -> Message:
            for message in asked:
                return message
            await gone.wait()  # the client waits for the answer, or went away where it did when recorded
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            del message

        scope = scope_of(cast("dict[str, Any]", request))
        target = target_of_block(trace.name, {"request": request})
        run = RecordedBlock(target, self.service.options(scope), None)
        run.on_cut_off = gone.set
        run.lacks = unkept_in(repr(cast(object, request)))
        with replaying(trace):
            try:
                await self._within(run, scope, _Exchange(scope, receive, send))
            except Exception as error:
                # What the application raised, as it did when recorded: the report says that it did.
                if run.report is None or (check and isinstance(error, DivergenceError)):
                    raise
        report = run.report
        if report is None:
            raise TargetError(
                f"run {trace.run_id} could not be replayed", hint="replay it under AGENTLOOM=replay"
            )
        return report


class _Exchange:
    """What passes between the server and the application: seen, not changed. The server's own code runs outside of the
    run: its clocks and its log are its own."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._receiving = 0
        self._ahead: list[Message] = []
        self._asked_all = not headers_of(scope).get("expect")
        self._outside = contextvars.copy_context()
        self.asked, self._said = _Body(), _Body()
        self.status = 0
        self._type: str | None = None
        self._done = False
        self.left = False

    async def receive(self) -> Message:
        """What the server hands over."""
        if self._ahead:
            message = self._ahead.pop()
        else:
            self._receiving += 1
            try:
                message = await _in_context(self._outside.copy(), self._receive())
            finally:
                self._receiving -= 1
        if message["type"] == "http.request":
            self.asked.add(message.get("body") or b"")
            self._asked_all = self._asked_all or not message.get("more_body", False)
        elif message["type"] == "http.disconnect" and not self._done:
            self.left = True  # the client went away before its answer was complete
        return message

    async def send(self, message: Message) -> None:
        """What the application answers."""
        self._look()
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            headers: Any = message.get("headers") or ()
            self._type = next(
                (value.decode("latin-1") for name, value in headers if name == b"content-type"), None
            )
        elif message["type"] == "http.response.body":
            self._said.add(message.get("body") or b"")
            self._done = not message.get("more_body", False)
        try:
            await _in_context(self._outside.copy(), self._send(message))
        except OSError:
            self.left = True  # how a server says it to who sends
            raise

    def _look(self) -> None:
        """Ask the server, without waiting, whether the client is still there: applications that do not stream never do.
        What else it hands over is kept for the application. Not where the client waits to be asked for its body."""
        if self.left or self._ahead or self._receiving or not self._asked_all:
            return
        message = _at_once(self._outside.copy(), self._receive())
        if message is not None:
            self._ahead.append(message)
            self.left = message["type"] == "http.disconnect"

    def answer(self) -> dict[str, Any] | None:
        """What the run's output is; None where no answer was begun."""
        if not self.status:
            return None
        return {"status": self.status, "content_type": self._type, "body": self._said.facts()}


@types.coroutine
def _in_context(context: contextvars.Context, work: Awaitable[Any]) -> Generator[Any, Any, Any]:
    """``await work`` with its code in ``context``."""
    steps = _awaiting(work)
    step: Callable[[Any], Any] = steps.send
    sent: Any = None
    while True:
        try:
            waits_for = context.run(step, sent)
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield waits_for
            step = steps.send
        except BaseException as error:  # noqa: BLE001 - thrown into the task: it is the work's
            sent, step = error, steps.throw


def _at_once(context: contextvars.Context, work: Awaitable[Any]) -> Any:
    """What ``work`` gives without waiting; None where it would wait: then it is cancelled there."""
    steps = _awaiting(work)
    try:
        context.run(steps.send, None)
        context.run(steps.throw, asyncio.CancelledError())
    except StopIteration as stop:
        return stop.value
    except asyncio.CancelledError:
        return None
    steps.close()
    return None


async def _awaiting(work: Awaitable[Any]) -> Any:
    return await work


def _id_of(scope: Scope) -> str | None:
    """What a request is known by: its id, or its place in a distributed trace."""
    headers = headers_of(scope)
    return headers.get("x-request-id") or headers.get("traceparent")
