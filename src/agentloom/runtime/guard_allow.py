"""``allow``: a declared scope in which the agent's own code may touch the world.

Files that are read in it are recorded and served on replay (``guard_files``). What cannot be recorded passes, and is in
the trace as a gap: nothing replays past it.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, TypeVar, cast, get_args

from agentloom.errors import NotSupported
from agentloom.runtime.effects import Kind
from agentloom.runtime.scope import current

__all__ = ["ALLOWS", "AllowKind", "allow", "reason_for"]

AllowKind = Literal["file.read", "file.write", "network", "process", "database", "native", "id"]
_KINDS: tuple[str, ...] = get_args(AllowKind)
ALLOWS: Mapping[Kind, AllowKind] = MappingProxyType(
    {
        "file read": "file.read",
        "file write": "file.write",
        "network": "network",
        "process": "process",
        "database": "database",
        "native": "native",
        "library": "native",
        "identity": "id",
        "readiness": "network",
    }
)
"""What each kind of effect is called in ``allow``."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is allowed here, with the reasons; the scope around it; whether it lets files be served."""

    reasons: Mapping[str, str]
    around: _Scope | None
    files: bool


_scopes: contextvars.ContextVar[_Scope | None] = contextvars.ContextVar("agentloom.allowed", default=None)
_FILES = frozenset(("file.read", "file.write"))
_enter: list[Callable[[], None]] = []
_leave: list[Callable[[], None]] = []


def reason_for(kind: Kind) -> str | None:
    """The reason of the scope that allows effects of this kind here, or None."""
    scope = _scopes.get()
    return None if scope is None else scope.reasons.get(ALLOWS.get(kind, ""))


def on_scopes(enter: Callable[[], None], leave: Callable[[], None]) -> None:
    """From now on call ``enter`` and ``leave`` where a scope that allows files begins and ends inside a run."""
    _enter.append(enter)
    _leave.append(leave)


class allow:  # noqa: N801 - used as a statement and as a decorator, like contextlib's
    """A scope (``with``, ``async with`` or decorator) in which the agent's own code may do what it declares.

    ``kinds`` are of ``file.read``, ``file.write``, ``network``, ``process``, ``database``, ``native`` (C functions) and
    ``id`` (``id()``, ``os.getpid()``); ``reason`` says why, and both are in the trace. Files read in it are recorded
    and served on replay; a write is performed when recording and refused on replay; what else is allowed passes when
    recording and is a gap of the trace. So a run that does anything but read in such a scope never replays identical.
    Outside a run, and where the guard is off, it does nothing.
    Raises ``ValueError`` for another kind.
    """

    def __init__(self, *kinds: AllowKind, reason: str) -> None:
        if not kinds:
            raise ValueError(f"allow() needs what is allowed: {', '.join(_KINDS)}")
        for kind in kinds:
            if kind not in _KINDS:
                raise ValueError(f"allow({kind!r}): it can be {', '.join(_KINDS)}")
        if not isinstance(reason, str) or not reason.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("allow(..., reason=...) needs a text that says why")
        self.kinds = kinds
        self.reason = reason

    def __enter__(self) -> Self:
        run = current()
        if run is not None and not run.session.guard.virtual:
            run = None
        if run is not None:
            run.session.declare({"allow": list(self.kinds), "reason": self.reason})
        around = _scopes.get()
        files = run is not None and not _FILES.isdisjoint(self.kinds)
        reasons: dict[str, str] = dict.fromkeys(self.kinds, self.reason)
        _scopes.set(_Scope(reasons if around is None else {**around.reasons, **reasons}, around, files))
        if files:
            for enter in _enter:
                enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        scope = _scopes.get()
        if scope is None:
            return  # left in another context than it was entered in: there it ends with the context
        _scopes.set(scope.around)
        if scope.files:
            for leave in _leave:
                leave()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        """As a decorator: the scope is each call of ``function``."""
        kinds, reason = self.kinds, self.reason
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise NotSupported(
                f"@allow(...) on {function.__qualname__}, which is a generator",
                hint="write `with allow(...):` around what it does",
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with allow(*kinds, reason=reason):
                    return await function(*args, **kwargs)

            return cast(F, awaited)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with allow(*kinds, reason=reason):
                return function(*args, **kwargs)

        return cast(F, called)
