"""An MCP connection as a run sees it: streams that lead nowhere, and host calls in the place of requests.

The session object of the SDK stays as it is in the run (negotiation, validation, callbacks, caches run again on
replay); each request and notification that it sends is a host call, made by the task that asked. What the server says
beside its answers comes in with the call that was under way, in the order in which it came.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

import anyio

from agentloom.adapters.drift import tools_served
from agentloom.adapters.mcp_outer import Connection, Opener, Question, TransportFailed, let_go_with, renamed
from agentloom.adapters.mcp_tools import ServedTools
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_async, open_async
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import Scope, current

__all__ = ["Link", "Sdk", "Writer", "connected", "listening"]

PROFILE = "mcp/1"
_READS = frozenset(
    (
        "initialize", "notifications/initialized", "server/discover", "ping", "tools/list", "resources/list",
        "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "completion/complete",
        "subscriptions/listen",
    )
)  # fmt: skip
_CALLBACKS = ("_sampling_callback", "_elicitation_callback", "_list_roots_callback")
_HANDLERS = ("_logging_callback", "_message_handler")
_LIMIT = 4096  # notifications that nobody has taken yet
_LETTING = 4  # turns of the loop in which the handlers of what came before an answer begin


@dataclass(frozen=True, slots=True)
class Answered:
    """A result with what the server said before it, and the number that the transport has given to the session."""

    result: dict[str, Any]
    events: list[dict[str, Any]]
    number: str | None = None


TYPES.register(Answered)


@dataclass(slots=True)
class Sdk:
    """What a release of the SDK has: the class ``failure``, and an ``error`` of it with code, text and data; a
    ``message`` of the fields of JSON-RPC, and what it ``unpacked`` is; what a request that ``timed_out`` raises."""

    failure: type[Exception]
    error: Callable[..., Exception]
    message: Callable[[dict[str, Any]], Any]
    unpacked: Callable[[Any], dict[str, Any]]
    timed_out: Callable[[str, float, bool], Exception]


class Writer:
    """In the place of the stream that a session writes to: answers to the server's requests become host calls."""

    def __init__(self, link: Link) -> None:
        self.link = link

    async def send(self, item: Any) -> None:
        """Only answers come here; requests and notifications are taken before."""
        if self.link.ended:
            raise anyio.ClosedResourceError
        fields = self.link.sdk.unpacked(item)
        if "method" in fields:
            raise NotSupported(
                f"an MCP session of this kind cannot be recorded: it writes {fields['method']} itself",
                hint="use mcp.ClientSession or mcp.Client, or use the session in a tool",
            )
        await self.link.answer(fields)

    async def aclose(self) -> None:
        """The session is over."""
        self.link.ended = True

    def close(self) -> None:
        """As ``aclose``."""
        self.link.ended = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Link:
    """One connection of a run. ``spawn`` starts a callback as the SDK does; the session sets it."""

    def __init__(self, scope: Scope, sdk: Sdk, opener: Opener, target: Mapping[str, Any]) -> None:
        self.sdk = sdk
        self.connection = Connection(opener, sdk.error)
        self.target = dict(target)
        self.server: str | None = None
        self.number: str | None = None
        self.tools = ServedTools()
        self.live = self.direct = self.ended = False
        self.spawn: Callable[..., None] | None = None
        self.tasks: Any = None
        self._feed, self.reader = anyio.create_memory_object_stream[Any](_LIMIT)
        self.writer = Writer(self)
        self._names = _names_of(scope)
        self._subscribed: dict[str, str] = {}

    # -- the connection --------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connect, as a host call."""

        async def perform(_: object) -> None:
            await self.connection.open()
            let_go_with(self, self.connection)

        spec = CallSpec("tool", "mcp.connect", {"target": self.target}, profile=PROFILE, effect="read")
        await call_async(spec, perform)

    async def close(self) -> None:
        """Disconnect, also where the block is left by a cancellation."""

        async def perform(_: object) -> None:
            await self.connection.close()

        self._feed.close()
        with anyio.CancelScope(shield=True):
            spec = CallSpec("tool", "mcp.close", {"server": self.server}, profile=PROFILE, effect="read")
            try:
                await call_async(spec, perform)
            except TransportFailed as failed:
                self._break(failed)

    def end(self) -> None:
        """Nothing comes in any more."""
        self._feed.close()
        self.reader.close()

    def _break(self, failed: TransportFailed) -> None:
        for error in failed.errors:
            self.tasks.start_soon(_raise, error)

    # -- what a session asks ---------------------------------------------------------------------------------------

    async def ask(
        self,
        question: Question,
        on_progress: Callable[..., Awaitable[None]] | None,
        on_token: Callable[[str], Awaitable[None]] | None,
        timeout: float | None,  # noqa: ASYNC109 - as the SDK has it
    ) -> dict[str, Any]:
        """The raw result of a request. Raises the SDK's errors."""
        if self.ended:
            raise anyio.ClosedResourceError
        question.progress = on_progress is not None
        if on_token is not None:
            question.more["tokens"] = True
        if current() is None:  # in a tool of a framework, which is the host call
            return await self._outside(question, on_progress)
        self._subscribe(question.more.get("request_id"))
        live = self.live and question.method != "initialize"
        asked = question.progress or on_token is not None or question.method == "subscriptions/listen"
        streamed = live or asked
        spec = self._spec(question, streamed)
        result: dict[str, Any] = {}
        with anyio.move_on_after(timeout) as limit:
            try:
                if streamed:
                    result = await self._stream(spec, question, on_progress, on_token)
                else:
                    result = await self._whole(spec, question)
            except TransportFailed as failed:
                self._break(failed)
                await anyio.sleep_forever()
        if limit.cancelled_caught and timeout is not None:
            raise self.sdk.timed_out(question.method, timeout, self.direct)
        self._said(question)
        self._learn(question, result)
        return result

    async def _outside(
        self, question: Question, on_progress: Callable[..., Awaitable[None]] | None
    ) -> dict[str, Any]:
        async for event in self.connection.events(question):
            if "progress" in event and on_progress is not None:
                await on_progress(*event["progress"])
            if "result" in event:
                return cast("dict[str, Any]", event["result"])
        raise self.sdk.error(-32000, "Connection closed")

    async def _whole(self, spec: CallSpec, question: Question) -> dict[str, Any]:
        async def perform(_: object) -> Any:
            result, events = await self.connection.whole(question)
            number = self.connection.number() if question.method == "initialize" else None
            return Answered(result, events, number) if events or number is not None else result

        value: Any = await call_async(spec, perform)
        if not isinstance(value, Answered):
            return cast("dict[str, Any]", value)
        if value.number is not None:
            self.number = value.number
        for event in value.events:
            self._take(event)
        for _ in range(_LETTING):
            await anyio.lowlevel.checkpoint()
        return value.result

    async def _stream(
        self,
        spec: CallSpec,
        question: Question,
        on_progress: Callable[..., Awaitable[None]] | None,
        on_token: Callable[[str], Awaitable[None]] | None,
    ) -> dict[str, Any]:
        def perform(_: object) -> AsyncIterator[object]:
            return self.connection.events(question)

        result: dict[str, Any] | None = None
        async with open_async(spec, perform) as stream:
            async for chunk in stream:
                event = cast("dict[str, Any]", chunk)
                if "result" in event:
                    result = event["result"]
                elif "progress" in event and on_progress is not None:
                    self._start(on_progress, *event["progress"])
                elif "token" in event and on_token is not None:
                    await on_token(event["token"])
                else:
                    self._take(event)
        if result is None:
            raise self.sdk.error(-32000, "Connection closed")
        return result

    async def tell(self, question: Question) -> None:
        """Send a notification."""
        if self.ended:
            raise anyio.ClosedResourceError
        if current() is None:
            await self.connection.notify(question)
            return

        async def perform(_: object) -> None:
            await self.connection.notify(question)

        try:
            await call_async(self._spec(question, False), perform)
        except TransportFailed as failed:
            self._break(failed)
            await anyio.sleep_forever()
        self._said(question, "notification")

    async def answer(self, fields: Mapping[str, Any]) -> None:
        """Answer a request of the server's."""
        number = cast(int, fields["id"])
        request = {name: fields[name] for name in ("result", "error") if name in fields}

        async def perform(_: object) -> None:
            self.connection.answer(number, request)

        asked = {"server": self.server, "id": number, **request}
        await call_async(CallSpec("tool", "mcp.answer", asked, profile=PROFILE, effect="write"), perform)

    # -- in between ------------------------------------------------------------------------------------------------

    def _take(self, event: Mapping[str, Any]) -> None:
        """Hand on what the server said, to the session's own reader."""
        if "notification" in event:
            told = event["notification"]
            known = {**told, "params": renamed(told["params"], self._subscribed)}
            self._feed.send_nowait(self.sdk.message(known))
        elif "request" in event:
            self._feed.send_nowait(self.sdk.message(event["request"]))
        elif "fault" in event:
            self._feed.send_nowait(ValueError(event["fault"]))

    def _start(self, callback: Callable[..., Awaitable[None]], *args: Any) -> None:
        if self.spawn is None:
            raise NotSupported(
                "an MCP session is used before it was entered", hint="use `async with session:`"
            )
        self.spawn(callback, *args)

    def _subscribe(self, number: object) -> None:
        """A request whose number the SDK has chosen, for the whole process: in the trace it is counted anew."""
        if isinstance(number, str):
            name = f"listen:{len(self._subscribed) + 1}"
            self._subscribed[name] = number
            self.connection.names[number] = name

    def _said(self, question: Question, kind: str = "request") -> None:
        if question.method in ("initialize", "notifications/initialized"):
            self.connection.handshake.append((kind, question))

    def _spec(self, question: Question, streamed: bool) -> CallSpec:
        params = dict(question.params or {})
        request: dict[str, Any] = {"server": self.server}
        meta = {
            name: value
            for name, value in dict(params.pop("_meta", None) or {}).items()
            if not name.startswith("io.modelcontextprotocol/")
        }
        if question.method == "tools/call":
            name = str(params.pop("name", ""))
            request = {"args": params.pop("arguments", None) or {}, **request}
            effect = self._effect(name)
        else:
            name, effect = f"mcp.{question.method}", "read" if question.method in _READS else "write"
        request |= params
        if meta:
            request["meta"] = meta
        return CallSpec("tool", name, request, profile=PROFILE, effect=effect, stream=streamed)

    def _effect(self, name: str) -> str:
        """What the user of the run said, else ``read`` where the server's list says so, else ``write``."""
        scope = current()
        use = None if scope is None else scope.session.tools
        effect = (None if use is None else use.effects.get(name)) or (
            "read" if self.tools.reads(name) else "write"
        )
        effect = "write" if effect == "agent" else effect  # a server is no code of the agent's
        if use is not None and use.used is not None:
            use.used(name, effect, "mcp")
        return effect

    def _learn(self, question: Question, result: Mapping[str, Any]) -> None:
        if question.method == "initialize":
            self._named(result.get("serverInfo"))
        elif question.method == "server/discover":
            meta = result.get("_meta")
            if isinstance(meta, Mapping):
                self._named(cast("Mapping[str, Any]", meta).get("io.modelcontextprotocol/serverInfo"))
        elif question.method == "tools/list":
            complete = self.tools.add((question.params or {}).get("cursor"), result)
            if complete is not None:
                tools_served(self.server or "server", complete)

    def _named(self, info: Any) -> None:
        """A server is called by its own name; the second of that name in a run is ``NAME#2``."""
        name = cast("Mapping[str, Any]", info).get("name") if isinstance(info, Mapping) else None
        if self.server is None and isinstance(name, str):
            count = self._names[name] = self._names.get(name, 0) + 1
            self.server = name if count == 1 else f"{name}#{count}"


def listening(link: Link, session: Any) -> None:
    """Find out what ``session``, which is about to use ``link``, looks at."""
    link.connection.answers = session is None or _has(session, _CALLBACKS)
    handlers = session is None or _has(session, _HANDLERS)
    bindings = bool(getattr(session, "_notification_bindings", None))
    link.connection.listens = handlers or bindings or link.connection.answers
    link.live = link.connection.answers or (handlers and not _only_evicts(session))


def _has(session: Any, names: tuple[str, ...]) -> bool:
    """Whether a session has a callback of its user's among ``names``."""
    return any(
        not getattr(getattr(session, name, None), "__name__", "").startswith("_default_") for name in names
    )


def _only_evicts(session: Any) -> bool:
    """Whether what looks at notifications is the SDK's own cache, and nobody else."""
    if _has(session, ("_logging_callback",)):
        return False
    handler: Any = session._message_handler
    if getattr(handler, "__qualname__", "") != "_evicting_message_handler.<locals>.handler":
        return False
    return inspect.getclosurevars(handler).nonlocals.get("user_handler") is None


_named: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()


def _names_of(scope: Scope) -> dict[str, int]:
    """How many servers of each name the run has met."""
    return _named.setdefault(scope.session, {})


async def _raise(error: BaseException) -> None:
    raise error


@asynccontextmanager
async def connected(sdk: Sdk, opener: Opener, target: Mapping[str, Any]) -> AsyncGenerator[Link]:
    """A connection for the block, in a task group as the SDK's own transports have one."""
    scope = current()
    if scope is None:
        raise NotSupported("an MCP connection of a run outside of it", hint="open it where it is used")
    link = Link(scope, sdk, opener, target)
    try:
        await link.connect()
        async with anyio.create_task_group() as tasks:
            link.tasks = tasks
            try:
                yield link
            finally:
                await link.close()
    finally:
        link.end()  # of a link without a session nobody else does
