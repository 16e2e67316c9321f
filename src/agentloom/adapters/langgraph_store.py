"""LangGraph's long-term memory becomes ``memory`` calls: what a graph gets of a ``BaseStore``, puts into it and
searches in it, sync and async.

The methods of the base class are patched as well as those of its subclasses: most stores have only ``batch`` and
``abatch`` of their own, which the others end in. What a store does below (its own batches, its embeddings) is part of
the call. A value without an exact form in a trace is kept as LangGraph's own serializer writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import wrap_overrides
from agentloom.adapters.langgraph_values import pack_state, unpack_state
from agentloom.adapters.releases import needed
from agentloom.format.guards import is_list, is_map
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.passed import passes
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import Scope, current
from agentloom.runtime.work import Work, doing

__all__ = ["install"]

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "get": ("namespace", "key"),
    "search": ("namespace",),
    "put": ("namespace", "key", "value", "index"),
    "delete": ("namespace", "key"),
    "list_namespaces": (),
    "batch": ("ops",),
}
"""Methods of a store (each with an awaited one, ``aget`` of ``get``), and the arguments that are given by position."""
_WRITES = ("put", "delete")
_WORK = Work("store")
_ITEM = ("value", "key", "namespace", "created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An ``Item``, or with a score (which may be None) a ``SearchItem``, by its fields."""

    fields: dict[str, Any]
    found: bool


TYPES.register(StoredItem)


def install(module: ModuleType) -> None:
    """Patch ``langgraph.store.base``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    wrappers: dict[str, Callable[[Any], Any]] = {}
    for name in _ARGUMENTS:
        needed(module, "BaseStore", name)
        needed(module, "BaseStore", f"a{name}")
        wrappers[name] = functools.partial(_blocking, name)
        wrappers[f"a{name}"] = functools.partial(_awaited, name)
    base = cast(Any, module).BaseStore
    for name, wrapper in wrappers.items():
        if not name.endswith("batch"):  # abstract, and those of subclasses are patched
            setattr(base, name, wrapper(base.__dict__[name]))
    wrap_overrides(base, wrappers)
    cast(Any, module).__agentloom__ = True


def _blocking(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            passes(f"store {type(self).__name__} (langgraph)")
            return method(self, *args, **kwargs)
        args, kwargs = _read_once(name, args, kwargs)

        def perform(_: Call) -> Any:
            with doing(_WORK):
                return _kept(method(self, *args, **kwargs))

        return _given(call_inline(_spec(name, args, kwargs), perform))

    return call


def _awaited(name: str, method: Any) -> Any:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = current()
        if scope is None or (name != "batch" and _lives_in(scope, self)):
            passes(f"store {type(self).__name__} (langgraph)")
            return await method(self, *args, **kwargs)
        args, kwargs = _read_once(name, args, kwargs)

        async def perform(_: Call) -> Any:
            with doing(_WORK):
                return _kept(await method(self, *args, **kwargs))

        return _given(await call_async(_spec(name, args, kwargs), perform))

    return call


def _lives_in(scope: Scope, store: Any) -> bool:
    """Whether a store gathers its calls in a task of the run's own loop: one that was made in the run. That task's
    batches are the calls then."""
    loop = scope.session.loop
    return loop is not None and getattr(store, "_loop", None) is loop


def _read_once(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operations of a batch may come from an iterator: they are looked at, and handed on."""
    if name != "batch":
        return args, kwargs
    if args:
        return (list(args[0]), *args[1:]), kwargs
    return args, kwargs | {"ops": list(kwargs["ops"])} if "ops" in kwargs else kwargs


def _spec(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallSpec:
    given = dict(zip(_ARGUMENTS[name], args, strict=False)) | dict(kwargs)
    if name == "batch":
        given["ops"] = [{"op": type(one).__name__, **one._asdict()} for one in given["ops"]]
        writes = any(one["op"] == "PutOp" for one in given["ops"])
    else:
        writes = name in _WRITES
    request = {field: _packed(value) for field, value in given.items() if not _is_left_out(value)}
    where = cast("tuple[str, ...]", given.get("namespace", ()))
    series = f"memory:{'/'.join(map(str, where))}"
    effect = "write" if writes else "read"
    return CallSpec("memory", f"store.{name}", request, effect=effect, series=series)


def _is_left_out(value: Any) -> bool:
    return type(value).__name__ == "NotProvided"


@functools.cache
def _serde() -> Any:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer()


class _Late:
    """LangGraph's serializer, loaded when a value needs it."""

    def dumps_typed(self, value: Any) -> Any:
        return _serde().dumps_typed(value)

    def loads_typed(self, data: Any) -> Any:
        return _serde().loads_typed(data)


def _packed(value: Any) -> Any:
    if is_list(value):
        return [_packed(one) for one in value]
    if is_map(value):
        return {key: _packed(one) for key, one in value.items() if not _is_left_out(one)}
    return pack_state(_Late(), value)


def _kept(value: Any) -> Any:
    """What a store gave, in a form that can be kept."""
    if is_list(value):
        return [_kept(one) for one in value]
    base = _store_module()
    if not isinstance(value, base.Item):
        return value
    found = isinstance(value, base.SearchItem)
    fields = {name: getattr(value, name) for name in (*_ITEM, *(("score",) if found else ()))}
    return StoredItem(fields | {"value": pack_state(_Late(), fields["value"])}, found)


def _given(value: Any) -> Any:
    if is_list(value):
        return [_given(one) for one in value]
    if not isinstance(value, StoredItem):
        return value
    base = _store_module()
    fields = value.fields | {"value": unpack_state(_Late(), value.fields["value"])}
    return (base.SearchItem if value.found else base.Item)(**fields)


def _store_module() -> Any:
    import langgraph.store.base

    return langgraph.store.base
