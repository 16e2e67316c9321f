"""The boundary itself: how a host call is made from sync and from async code, streamed or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Self, cast

from agentloom.errors import ControlFlow, NotSupported, StoreFailed
from agentloom.runtime import plainly
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.engine import Delivery
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.scope import Scope, current

if TYPE_CHECKING:
    from agentloom.runtime.stock import StockCalls

__all__ = ["AsyncStream", "SyncStream", "call_async", "call_inline", "mark", "open_async", "open_inline"]

_IN_SYNC = frozenset(("model", "http", "sleep", "step", "retrieve"))
"""Awaited host functions that ``agentloom.sync`` has too."""


def call_inline(spec: CallSpec, perform: Callable[[Call], object]) -> object:
    """Make a call whose caller blocks until its outcome is there. Raises what the call raised.

    ``perform`` gets the call as captured; its arguments are in ``call.tree``, untouched by later mutation.
    """
    scope = current() or taking_part(spec.type)
    if scope is None:
        return plainly.call(spec, perform)
    session = scope.session
    if session.baton is not None and session.baton.beside:
        return session.baton.call(spec, scope, perform)
    if session.stock is not None:
        return session.stock.call(spec, scope, perform)
    engine = session.engine
    call = engine.begin(spec, scope, waits=True)
    try:
        arrival = session.source.inline(call, partial(perform, call))
    except (ControlFlow, StoreFailed) as failure:
        engine.fail(failure)
    return engine.deliver(arrival).unwrap()


async def call_async(spec: CallSpec, perform: Callable[[Call], Awaitable[object]]) -> object:
    """Make an awaited call. Cancelling the waiting task cancels the call and writes that down."""
    scope = current() or taking_part(spec.type)
    if scope is None:
        return await plainly.call_async(spec, perform)
    session = scope.session
    if session.loop is None and session.stock is not None:
        return await session.stock.call_async(spec, scope, perform)
    loop = session.loop or _loop_of(scope, spec)
    call = session.engine.begin(spec, scope)
    call.sink = future = loop.create_future()
    session.source.start(call, partial(perform, call))
    try:
        delivery = await future
    except asyncio.CancelledError:
        session.engine.end_by_agent(call, "cancelled")
        raise
    # An error comes as a value and is raised here: one that is thrown into coroutines from outside is made to have been
    # raised beside whatever each of them handles (``__context__``), past what it was really raised beside.
    return (delivery if type(delivery) is Delivery else _as_delivery(delivery)).unwrap()


def open_async(spec: CallSpec, perform: Callable[[Call], AsyncIterator[object]]) -> AsyncStream:
    """Begin an awaited stream. The request is written now; chunks come as the reader asks for them."""
    scope = taking_part(spec.type)
    if scope is None:
        return cast(AsyncStream, plainly.PlainAsyncStream(spec, perform))  # to its reader it is one
    session = scope.session
    if session.loop is None and session.stock is not None:
        return AsyncStream(session.stock.open(spec, scope, perform), scope, session.stock)
    _loop_of(scope, spec)
    call = session.engine.begin(spec, scope)
    session.source.open(call, partial(perform, call))
    return AsyncStream(call, scope)


def open_inline(spec: CallSpec, perform: Callable[[Call], Iterator[object]]) -> SyncStream:
    """Begin a stream whose reader blocks."""
    scope = taking_part(spec.type)
    if scope is None:
        return cast(SyncStream, plainly.PlainStream(spec, perform))
    stock = scope.session.stock
    if stock is not None:
        return SyncStream(stock.open_inline(spec, scope, perform), scope, stock)
    call = scope.session.engine.begin(spec, scope)
    scope.session.source.open_inline(call, partial(perform, call))
    return SyncStream(call, scope)


def mark(kind: str, value: object) -> None:
    """Write a note or a flag into the trace. ``ValueRefused`` for a value that cannot be kept."""
    scope = taking_part(kind)
    if scope is None:
        plainly.copied(value)
    else:
        scope.session.engine.mark(kind, value)


class AsyncStream:
    """The chunks of an awaited stream. ``aclose`` (also by ``async with``) leaves it early; that is written down."""

    def __init__(self, call: Call, scope: Scope, stock: StockCalls | None = None) -> None:
        self.call = call
        self._scope = scope
        self._stock = stock
        self._finished = False
        self._reading: asyncio.Future[object] | None = None
        self.value: object = None
        """What the call ended with, once it has ended: a value where all came in one piece, and not in chunks."""

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> object:
        if self._finished:
            raise StopAsyncIteration
        if self._reading is not None:
            raise RuntimeError(f"the stream {self.call.id} is already being read by another task")
        if self._stock is not None:
            return await self._next_on_stock(self._stock)
        session = self._scope.session
        session.engine.guard()
        self.call.sink = self._reading = future = _loop_of(self._scope, self.call.spec).create_future()
        session.source.want(self.call)
        try:
            delivery = _as_delivery(await future)
            delivery.unwrap()
        except asyncio.CancelledError:
            self._finished = True
            session.engine.end_by_agent(self.call, "cancelled")
            raise
        except BaseException:
            self._finished = True
            raise
        finally:
            self._reading = None
        if delivery.done:
            self._finished = True
            self.value = delivery.value
            raise StopAsyncIteration
        return delivery.value

    async def _next_on_stock(self, stock: StockCalls) -> object:
        try:
            delivery = await stock.next(self.call, self._scope)
        except BaseException:
            self._finished = True
            raise
        if delivery.done:
            self._finished = True
            self.value = delivery.value
            raise StopAsyncIteration
        return delivery.value

    async def aclose(self) -> None:
        """Leave the stream where it is. Harmless when it ended already. A task that waits for a chunk sees the end."""
        if self._finished:
            return
        self._finished = True
        if self._stock is not None:
            self._stock.leave(self.call, self._scope)
        else:
            self._scope.session.engine.end_by_agent(self.call, "closed")
            if self._reading is not None and not self._reading.done():
                self._reading.set_result(Delivery(self.call, "outcome"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class SyncStream:
    """The chunks of a stream whose reader blocks. ``close`` (also by ``with``) leaves it early."""

    def __init__(self, call: Call, scope: Scope, stock: StockCalls | None = None) -> None:
        self.call = call
        self._scope = scope
        self._stock = stock
        self._finished = False
        self.value: object = None
        """As that of an `AsyncStream`."""

    def __iter__(self) -> SyncStream:
        return self

    def __next__(self) -> object:
        if self._finished:
            raise StopIteration
        try:
            delivery = self._delivered()
        except BaseException:
            self._finished = True
            raise
        if delivery.done:
            self._finished = True
            self.value = delivery.value
            raise StopIteration
        return delivery.value

    def _delivered(self) -> Delivery:
        if self._stock is not None:
            return self._stock.next_inline(self.call, self._scope)
        session = self._scope.session
        session.engine.guard()
        try:
            arrival = session.source.next_inline(self.call)
        except ControlFlow as failure:
            session.engine.fail(failure)
        delivery = session.engine.deliver(arrival)
        delivery.unwrap()
        return delivery

    def close(self) -> None:
        """Leave the stream where it is. Harmless when it ended already."""
        if not self._finished:
            self._finished = True
            if self._stock is not None:
                self._stock.leave(self.call, self._scope)
            else:
                self._scope.session.engine.end_by_agent(self.call, "closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _as_delivery(value: object) -> Delivery:
    if not isinstance(value, Delivery):
        raise TypeError(f"a host call's future was set by somebody else: {value!r}")
    return value


def _loop_of(scope: Scope, spec: CallSpec) -> asyncio.AbstractEventLoop:
    """The run's inner loop; it must be the running one."""
    loop = scope.session.loop
    if loop is None:
        raise NotSupported(
            f"{spec.type} {spec.name} was awaited in a sync agent",
            hint=f"use agentloom.sync.{spec.type} there, or make the agent async"
            if spec.type in _IN_SYNC
            else f"make the agent async, or {spec.name} sync",
        )
    return loop
