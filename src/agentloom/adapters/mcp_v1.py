"""MCP clients of the SDK's releases 1.x: there a session writes to its stream itself, and no dispatcher is between."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import ModuleType
from typing import Any, cast

import anyio

from agentloom.adapters.mcp_link import Link, Sdk, Writer, connected, listening
from agentloom.adapters.mcp_outer import Question
from agentloom.adapters.releases import needed
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current

__all__ = ["Wire", "install_memory", "install_session", "sdk"]

_CLOSED = -32000


# -- in the run ----------------------------------------------------------------------------------------------------


def install_session(module: ModuleType) -> None:
    """Patch ``mcp.shared.session``: over the streams of a run a session makes host calls. Idempotent. Raises
    ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    for name in ("send_request", "send_notification", "__aenter__"):
        needed(module, "BaseSession", name)
    base: Any = cast(Any, module).BaseSession
    enter, ask, tell = base.__aenter__, base.send_request, base.send_notification

    @functools.wraps(enter)
    async def __aenter__(self: Any) -> Any:  # noqa: N807 - the name is Python's
        link = _link_of(self)
        if link is not None:
            listening(link, self)
        entered = await enter(self)
        if link is not None:
            link.spawn = functools.partial(_spawn, self)
        return entered

    @functools.wraps(ask)
    async def send_request(
        self: Any,
        request: Any,
        result_type: Any,
        request_read_timeout_seconds: Any = None,
        metadata: Any = None,
        progress_callback: Any = None,
    ) -> Any:
        link = _link_of(self)
        if link is None:
            return await ask(
                self, request, result_type, request_read_timeout_seconds, metadata, progress_callback
            )
        data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        limit = request_read_timeout_seconds or self._session_read_timeout_seconds
        more: dict[str, Any] = {}
        if getattr(metadata, "resumption_token", None) is not None:
            more["resumption_token"] = metadata.resumption_token
        raw = await link.ask(
            Question(data["method"], data.get("params"), more),
            progress_callback,
            getattr(metadata, "on_resumption_token_update", None),
            None if limit is None else limit.total_seconds(),
        )
        return result_type.model_validate(raw)

    @functools.wraps(tell)
    async def send_notification(self: Any, notification: Any, *args: Any, **kwargs: Any) -> None:
        link = _link_of(self)
        if link is None:
            await tell(self, notification, *args, **kwargs)
            return
        data = notification.model_dump(by_alias=True, mode="json", exclude_none=True)
        await link.tell(Question(data["method"], data.get("params")))

    base.__aenter__, base.send_request, base.send_notification = __aenter__, send_request, send_notification
    cast(Any, module).__agentloom__ = True


def _link_of(session: Any) -> Link | None:
    writer = getattr(session, "_write_stream", None)
    return writer.link if isinstance(writer, Writer) else None


def _spawn(session: Any, callback: Any, *given: Any) -> None:
    async def run() -> None:
        try:
            await callback(*given)
        except Exception as error:  # noqa: BLE001 - the SDK's own rule for callbacks
            logging.error("Progress callback raised an exception: %s", error)  # noqa: LOG015, TRY400 - its words

    session._task_group.start_soon(run)


def install_memory(module: ModuleType) -> None:
    """Patch ``mcp.shared.memory``: a server in this process runs outside of a run. Idempotent. Nothing to do for
    releases that have no such function."""
    original = getattr(module, "create_connected_server_and_client_session", None)
    if getattr(module, "__agentloom__", False) or original is None:
        return
    memory = cast(Any, module)

    @asynccontextmanager
    @functools.wraps(original)
    async def create_connected_server_and_client_session(
        server: Any, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[Any]:
        if current() is None:
            async with original(server, *args, **kwargs) as session:
                yield session
            return
        names = ("read_timeout_seconds", "sampling_callback", "list_roots_callback", "logging_callback",
                 "message_handler", "client_info", "raise_exceptions", "elicitation_callback")  # fmt: skip
        given = dict(zip(names, args, strict=False)) | kwargs
        raises = given.pop("raise_exceptions", False)
        opener = functools.partial(_serve, memory, getattr(server, "_mcp_server", server), raises)
        async with (
            connected(sdk(), opener, {"transport": "memory"}) as link,
            memory.ClientSession(read_stream=link.reader, write_stream=link.writer, **given) as session,
        ):
            await session.initialize()
            yield session

    memory.create_connected_server_and_client_session = create_connected_server_and_client_session
    memory.__agentloom__ = True


async def _serve(memory: Any, server: Any, raises: bool, stack: AsyncExitStack, fault: Any) -> Any:
    """Opens a connection to a server that runs in a task beside it."""
    ours, theirs = await stack.enter_async_context(memory.create_client_server_memory_streams())
    tasks = await stack.enter_async_context(anyio.create_task_group())
    options = server.create_initialization_options()
    tasks.start_soon(lambda: server.run(*theirs, options, raise_exceptions=raises))
    stack.callback(tasks.cancel_scope.cancel)
    reader, writer = ours
    return Wire(reader, writer, fault)


@functools.cache
def sdk() -> Sdk:
    """What the links of a run need of the SDK."""
    import mcp.types as plain_types
    from mcp.shared import exceptions

    types: Any = plain_types
    TYPES.declare(types.ErrorData)
    failed: Any = cast(Any, exceptions).McpError

    def error(code: int, text: str, data: Any = None) -> Exception:
        made: Exception = failed(types.ErrorData(code=code, message=text, data=data))
        return made

    def timed_out(_: str, seconds: float, __: bool) -> Exception:
        return error(408, f"Timed out while waiting for response to ClientRequest. Waited {seconds} seconds.")

    def unpacked(item: Any) -> dict[str, Any]:
        return cast(
            "dict[str, Any]", item.message.root.model_dump(by_alias=True, mode="json", exclude_none=True)
        )

    return Sdk(failure=failed, error=error, message=_message, unpacked=unpacked, timed_out=timed_out)


def _message(fields: Mapping[str, Any], metadata: Any = None) -> Any:
    """A message of the SDK of the fields of JSON-RPC."""
    import mcp.types as plain_types
    from mcp.shared.message import SessionMessage

    message: Any = cast(Any, plain_types).JSONRPCMessage
    kept = {name: value for name, value in fields.items() if name != "params" or value is not None}
    return SessionMessage(message.model_validate({"jsonrpc": "2.0", **kept}), metadata)


# -- around it -----------------------------------------------------------------------------------------------------


class Wire:
    """Requests and answers over a transport's streams: what the dispatcher of later releases is."""

    def __init__(self, reader: Any, writer: Any, fault: Callable[[Exception], Awaitable[None]]) -> None:
        self._reader, self._writer, self._fault = reader, writer, fault
        self._count = 0
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[Any, Any] = {}
        self._answering: dict[Any, Any] = {}
        self.number: Callable[[], str | None] | None = None

    async def run(self, on_request: Any, _: Any, noticed: Any, *, task_status: Any) -> None:
        """Read until the streams end."""
        try:
            async with self._writer, self._reader, anyio.create_task_group() as tasks:
                task_status.started()
                async for item in self._reader:
                    if isinstance(item, Exception):
                        await self._fault(item)
                        continue
                    fields = item.message.root.model_dump(by_alias=True, mode="json", exclude_unset=True)
                    if "method" not in fields:
                        self._resolve(fields)
                    elif "id" in fields:
                        tasks.start_soon(self._answer, on_request, fields)
                    else:
                        await self._notice(fields, noticed)
                tasks.cancel_scope.cancel()
        except anyio.ClosedResourceError:
            pass  # the transport ended
        finally:
            for waiting in list(self._waiting.values()):
                if not waiting.done():
                    waiting.set_result({"error": {"code": _CLOSED, "message": "Connection closed"}})

    def _resolve(self, fields: Mapping[str, Any]) -> None:
        number = fields.get("id")
        if isinstance(number, str) and number.isdecimal():
            number = int(number)
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(dict(fields))

    async def _notice(self, fields: Mapping[str, Any], noticed: Any) -> None:
        params: Mapping[str, Any] = fields.get("params") or {}
        if fields["method"] == "notifications/cancelled":
            scope = self._answering.get(params.get("requestId"))
            if scope is not None:
                scope.cancel()
            return
        if fields["method"] == "notifications/progress":
            callback = self._progress.get(params.get("progressToken"))
            if callback is not None:
                await callback(params.get("progress"), params.get("total"), params.get("message"))
        noticed(fields["method"], fields.get("params"))

    async def _answer(self, on_request: Any, fields: Mapping[str, Any]) -> None:
        number = fields["id"]
        answer: dict[str, Any] = {"error": {"code": 0, "message": "Request cancelled"}}
        with anyio.CancelScope() as scope:
            self._answering[number] = scope
            try:
                answer = {"result": await on_request(None, fields["method"], fields.get("params"))}
            except sdk().failure as error:
                answer = {"error": cast(Any, error).error.model_dump(mode="json", exclude_none=True)}
            finally:
                del self._answering[number]
        await self._writer.send(_message({"id": number, **answer}))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The raw result. Raises the SDK's error; the stream's, where the connection is closed already."""
        number, self._count = self._count, self._count + 1
        fields: dict[str, Any] = {"id": number, "method": method}
        if params is not None:
            fields["params"] = dict(params)
        if (on_progress := opts.get("on_progress")) is not None:
            given = fields.setdefault("params", {})
            given["_meta"] = {**(given.get("_meta") or {}), "progressToken": number}
            self._progress[number] = on_progress
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._writer.send(_message(fields, _metadata(opts)))
            answer = await waiting
        finally:
            self._waiting.pop(number, None)
            self._progress.pop(number, None)
        if (error := answer.get("error")) is not None:
            raise sdk().error(error["code"], error["message"], error.get("data"))
        return cast("dict[str, Any]", answer.get("result") or {})

    async def notify(self, method: str, params: Mapping[str, Any] | None, _: Mapping[str, Any]) -> None:
        """Send a notification."""
        await self._writer.send(_message({"method": method, "params": params}))


def _metadata(opts: Mapping[str, Any]) -> Any:
    token, on_token = opts.get("resumption_token"), opts.get("on_resumption_token")
    if token is None and on_token is None:
        return None
    from mcp.shared.message import ClientMessageMetadata

    return ClientMessageMetadata(resumption_token=token, on_resumption_token_update=on_token)
