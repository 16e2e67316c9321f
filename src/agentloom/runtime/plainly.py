"""Host calls of code that is left alone: performed at once, by whoever makes them, and nothing is kept of them.

What is asked for and what comes back take the same forms as in a run (fresh copies of what can be kept exactly), so
that code which works here works there too, and is refused the same values.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Self

from agentloom.errors import ValueRefused
from agentloom.format.captures import Captures
from agentloom.format.values import decode, encode_apart
from agentloom.runtime.calls import Call, CallSpec, Whole
from agentloom.runtime.changes import in_effect
from agentloom.runtime.profiles import all_key, split
from agentloom.runtime.registry import TYPES

__all__ = ["PlainAsyncStream", "PlainStream", "asked", "call", "call_async", "copied", "side_by_side"]


def asked(spec: CallSpec) -> Call:
    """The request as it would be written. ``ValueRefused`` as in a run."""
    rule = in_effect(spec.profile, spec.change)
    fields: Any = spec.request
    if not all_key(rule, spec.request):
        fields = split(rule, spec.request).written(spec.request)
    try:
        tree, _ = Captures(TYPES).capture(fields, None)
    except ValueRefused as refused:
        reason = f"{refused.reason} (argument of {spec.type} {spec.name})"
        raise ValueRefused(refused.path, refused.type_name, reason) from None
    made = Call(spec, "", "", 0, "?", "", tree, tree, {})
    if rule.rule is not None:
        made.rule = rule
    return made


def copied(value: object) -> Any:
    """``value`` as it would come back from a trace. ``ValueRefused`` for what cannot."""
    tree, plain, _ = encode_apart(value, TYPES)
    return tree if plain else decode(tree, TYPES)


def call(spec: CallSpec, perform: Callable[[Call], object]) -> Any:
    """Perform a call whose caller blocks. Raises what it raises."""
    return copied(perform(asked(spec)))


async def call_async(spec: CallSpec, perform: Callable[[Call], Awaitable[object]]) -> Any:
    """As ``call``, for one that is awaited."""
    return copied(await perform(asked(spec)))


class PlainAsyncStream:
    """The chunks of an awaited stream, as they come. ``aclose`` (also by ``async with``) leaves it early."""

    def __init__(self, spec: CallSpec, perform: Callable[[Call], AsyncIterator[object]]) -> None:
        asking = asked(spec)
        self._make: Callable[[], AsyncIterator[object]] = partial(perform, asking)
        self._chunks: AsyncIterator[object] | None = None
        self._finished = False
        self.value: object = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> object:
        if self._finished:
            raise StopAsyncIteration
        try:
            if self._chunks is None:
                self._chunks = self._make()
            chunk = await anext(self._chunks)
            if type(chunk) is Whole:
                self.value = copied(chunk.value)
                chunk = await anext(self._chunks)  # it has nothing more, and lets go of what it holds
            return copied(chunk)
        except BaseException:
            self._finished = True
            raise

    async def aclose(self) -> None:
        """Leave the stream where it is. Harmless when it ended already."""
        self._finished = True
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class PlainStream:
    """As ``PlainAsyncStream``, for a reader that blocks."""

    def __init__(self, spec: CallSpec, perform: Callable[[Call], Iterator[object]]) -> None:
        asking = asked(spec)
        self._make: Callable[[], Iterator[object]] = partial(perform, asking)
        self._chunks: Iterator[object] | None = None
        self._finished = False
        self.value: object = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> object:
        if self._finished:
            raise StopIteration
        try:
            if self._chunks is None:
                self._chunks = self._make()
            chunk = next(self._chunks)
            if type(chunk) is Whole:
                self.value = copied(chunk.value)
                chunk = next(self._chunks)
            return copied(chunk)
        except BaseException:
            self._finished = True
            raise

    def close(self) -> None:
        """Leave the stream where it is. Harmless when it ended already."""
        self._finished = True
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def side_by_side(branches: Sequence[Callable[[], Any]]) -> list[Any]:
    """``sync.parallel``: each of the functions in a thread. All come to their end; then the first error in their order
    is raised, an interruption before any other."""
    values: list[Any] = [None] * len(branches)
    errors: list[BaseException | None] = [None] * len(branches)

    def run(number: int, branch: Callable[[], Any]) -> None:
        try:
            values[number] = branch()
        except BaseException as error:  # noqa: BLE001 - raised again where all are waited for
            errors[number] = error

    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(run, number, branch), name="agentloom parallel"
        )
        for number, branch in enumerate(branches)
    ]
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads: an error of this branch
            errors[number] = error
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    for failure in sorted((error for error in errors if error is not None), key=_ordinary):
        raise failure
    return values


def _ordinary(error: BaseException) -> bool:
    return isinstance(error, Exception)
