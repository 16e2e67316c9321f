"""LangGraph's checkpointers become ``memory`` calls: what a graph reads of a thread's state and writes to it.

State that has no exact form in a trace is kept as the saver's own serializer writes it, which is what a saver that
writes to a disk would give back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import wrap_overrides
from agentloom.adapters.langgraph_values import Stored, pack_state, plain_messages, unpack_state
from agentloom.adapters.releases import needed
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.passed import passes
from agentloom.runtime.scope import current

__all__ = ["install"]

_READS = ("get_tuple", "list")
_WRITES = ("put", "put_writes", "delete_thread")


def install(module: ModuleType) -> None:
    """Patch ``langgraph.checkpoint.base``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    wrappers: dict[str, Callable[[Any], Any]] = {}
    for name in (*_READS, *_WRITES):
        needed(module, "BaseCheckpointSaver", name)
        needed(module, "BaseCheckpointSaver", f"a{name}")
        wrappers[name] = functools.partial(_blocking, name)
        wrappers[f"a{name}"] = functools.partial(_awaited, name)
    wrappers["list"], wrappers["alist"] = _listing, _awaited_listing
    wrap_overrides(cast(Any, module).BaseCheckpointSaver, wrappers)
    cast(Any, module).__agentloom__ = True


def _blocking(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            _told(self)
            return method(self, *args, **kwargs)
        spec = _spec(self, name, args, kwargs)
        return _given(self, call_inline(spec, lambda _: _kept(self, method(self, *args, **kwargs))))

    return call


def _awaited(name: str, method: Any) -> Any:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            _told(self)
            return await method(self, *args, **kwargs)

        async def perform(_: object) -> Any:
            return _kept(self, await method(self, *args, **kwargs))

        return _given(self, await call_async(_spec(self, name, args, kwargs), perform))

    return call


def _listing(method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            _told(self)
            yield from method(self, *args, **kwargs)
            return
        spec = _spec(self, "list", args, kwargs)
        found = call_inline(spec, lambda _: [_kept(self, one) for one in method(self, *args, **kwargs)])
        yield from (_given(self, one) for one in cast("list[Any]", found))

    return call


def _awaited_listing(method: Any) -> Any:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            _told(self)
            async for one in method(self, *args, **kwargs):
                yield one
            return

        async def perform(_: object) -> Any:
            return [_kept(self, one) async for one in method(self, *args, **kwargs)]

        for one in cast("list[Any]", await call_async(_spec(self, "list", args, kwargs), perform)):
            yield _given(self, one)

    return call


def _told(saver: Any) -> None:
    passes(f"checkpointer {type(saver).__name__} (langgraph)")


_NAMES: dict[str, Sequence[str]] = {
    "get_tuple": ("config",),
    "list": ("config",),
    "put": ("config", "checkpoint", "metadata", "new_versions"),
    "put_writes": ("config", "writes", "task_id", "task_path"),
    "delete_thread": ("thread_id",),
}


def _spec(saver: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallSpec:
    given = dict(zip(_NAMES[name], args, strict=False)) | dict(kwargs)
    thread = given.get("thread_id")
    request: dict[str, Any] = {}
    for field, value in given.items():
        if field in ("config", "before"):
            where = _place(saver, value)
            thread = where.get("thread_id", thread) if where else thread
            request[field] = where
        elif field == "checkpoint":
            request |= _checkpoint(saver, value)
        else:
            request[field] = pack_state(saver.serde, value)
    effect = "write" if name in _WRITES else "read"
    return CallSpec("memory", f"checkpoint.{name}", request, effect=effect, series=f"memory:{thread}")


def _checkpoint(saver: Any, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint as fields of a request. Messages are plain mappings there, and a field of their own: a history that
    grows then shares its beginning with the one before."""
    values = cast("dict[str, Any]", checkpoint.get("channel_values") or {})
    rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    apart = {
        f"values.{channel}": pack_state(saver.serde, plain_messages(value))
        for channel, value in values.items()
    }
    return {"checkpoint": pack_state(saver.serde, rest), **apart}


def _place(saver: Any, config: Any) -> dict[str, Any] | None:
    """Where in a saver a configuration points to; the rest of it is how the graph is run."""
    if not isinstance(config, Mapping):
        return None
    found = cast("dict[str, Any]", cast("Mapping[str, Any]", config).get("configurable") or {})
    return {
        name: pack_state(saver.serde, found[name])
        for name in ("thread_id", "checkpoint_ns", "checkpoint_id")
        if name in found
    }


def _kept(saver: Any, value: Any) -> Any:
    """What a saver gave, in a form that can be kept."""
    if isinstance(value, tuple) and hasattr(type(value), "_asdict"):  # pyright: ignore[reportUnknownArgumentType]
        fields = cast(Any, value)._asdict()
        return Stored({name: pack_state(saver.serde, one) for name, one in fields.items()})
    return value if value is None or isinstance(value, str) else pack_state(saver.serde, value)


def _given(saver: Any, value: Any) -> Any:
    if isinstance(value, Stored):
        from langgraph.checkpoint.base import CheckpointTuple

        return CheckpointTuple(**{name: unpack_state(saver.serde, one) for name, one in value.fields.items()})
    return unpack_state(saver.serde, value)
