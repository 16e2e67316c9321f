"""The sessions of OpenAI's Agents SDK become ``memory`` calls: what a conversation's history holds, what is added to it
and taken from it.

Every subclass of ``SessionABC`` is patched, and the class of any other session when a runner gets one. What a session
does below (its database, the session that it wraps) is part of the call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import wrap_methods, wrap_overrides
from agentloom.adapters.releases import needed
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.passed import passes
from agentloom.runtime.scope import current
from agentloom.runtime.work import Work, doing

__all__ = ["install", "install_sqlite", "with_session"]

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "get_items": ("limit",),
    "add_items": ("items",),
    "pop_item": (),
    "clear_session": (),
}
_HANDED_ON = ("wrapper",)
"""Arguments that the SDK adds: the context of its run."""
_HOME = "agents.memory.session"
_WORK = Work("session")


def install(module: ModuleType) -> None:
    """Patch ``agents.memory.session``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    for name in _ARGUMENTS:
        needed(module, "SessionABC", name)
    wrap_overrides(cast(Any, module).SessionABC, _WRAPPERS)
    cast(Any, module).__agentloom__ = True


def install_sqlite(module: ModuleType) -> None:
    """Patch ``agents.memory.sqlite_session``: a database that a run opens is opened by a call. Idempotent."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "SQLiteSession", "__init__")
    cls = cast(Any, module).SQLiteSession
    cls.__init__ = _opening(cls.__init__)
    cast(Any, module).__agentloom__ = True


def with_session(run: Any) -> Any:
    """A runner's ``run``: the class of the session that it gets is patched if it is not yet."""

    @functools.wraps(run)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("session") is not None and current() is not None:
            for cls in type(kwargs["session"]).__mro__:
                if cls.__module__ != _HOME:  # the SDK's own protocol has no bodies
                    wrap_methods(cls, _WRAPPERS)
        return run(*args, **kwargs)

    return called


def _wrapped(name: str, method: Any) -> Any:
    return _awaited(name, method) if inspect.iscoroutinefunction(method) else _blocking(name, method)


def _awaited(name: str, method: Any) -> Any:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            passes(f"session {type(self).__name__} (openai-agents)")
            return await method(self, *args, **kwargs)

        async def perform(_: Call) -> Any:
            with doing(_WORK):
                return await method(self, *args, **kwargs)

        return await call_async(_spec(self, name, args, kwargs), perform)

    return call


def _blocking(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            passes(f"session {type(self).__name__} (openai-agents)")
            return method(self, *args, **kwargs)

        def perform(_: Call) -> Any:
            with doing(_WORK):
                return method(self, *args, **kwargs)

        return call_inline(_spec(self, name, args, kwargs), perform)

    return call


_WRAPPERS: dict[str, Callable[[Any], Any]] = {name: functools.partial(_wrapped, name) for name in _ARGUMENTS}


def _spec(session: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallSpec:
    given = dict(zip(_ARGUMENTS[name], args, strict=False)) | dict(kwargs)
    request = {
        field: value for field, value in given.items() if field not in _HANDED_ON and value is not None
    }
    which = str(getattr(session, "session_id", ""))
    effect = "read" if name == "get_items" else "write"
    return CallSpec(
        "memory", f"session.{name}", {"session": which, **request}, effect=effect, series=f"memory:{which}"
    )


def _opening(init: Any) -> Any:
    """``SQLiteSession.__init__`` as a call where it opens a file. On replay the database is one in memory: what is read
    of it comes from the trace."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        path = str(given.get("db_path", ":memory:"))
        if current() is None or path == ":memory:":
            init(self, *args, **kwargs)
            return
        opened: list[bool] = []

        def perform(_: Call) -> None:
            with doing(_WORK):
                init(self, *args, **kwargs)
            opened.append(True)

        which = str(given.get("session_id"))
        call_inline(
            CallSpec("memory", "session.open", {"session": which, "path": path}, effect="write"), perform
        )
        if not opened:
            init(**(given | {"db_path": ":memory:"}))
            self.db_path = given["db_path"]

    return made
