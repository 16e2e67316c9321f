"""``Grant``: somebody's yes to one call of a tool, with exactly these arguments, once, for a time."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from agentloom.errors import GrantRefused
from agentloom.format.canonical import canonical
from agentloom.format.values import Tree, decode, encode
from agentloom.format.words import moment
from agentloom.runtime.boundary import mark
from agentloom.runtime.changes import in_effect
from agentloom.runtime.guard_clock import wall
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.profiles import Profile, all_key, parts_of, split
from agentloom.runtime.registry import TYPES, declare_annotations
from agentloom.runtime.scope import current
from agentloom.runtime.session import Session
from agentloom.runtime.tool_schema import schema_of_tool

__all__ = ["Grant", "Wanted", "run_clock"]


def run_clock(session: Session) -> int:
    """What the clock of a run shows (nanoseconds since 1970): the same in a replay."""
    guard = session.guard
    return wall(session) if guard.virtual else guard.start + session.engine.vt


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that somebody is asked to approve. ``arguments``: all of them, which have to be the same; ``shown``: those
    that may be written; ``asked``: those that a replay compares."""

    tool: Callable[..., Any]
    args: tuple[object, ...]
    kwargs: dict[str, object]
    name: str
    arguments: dict[str, Tree]
    schema: dict[str, Tree]
    shown: dict[str, object]
    asked: dict[str, object]

    @classmethod
    def of(cls, tool: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Wanted:
        """``TypeError`` for what is no tool, and for arguments that it does not take; ``ValueRefused`` for arguments
        that cannot be kept."""
        maker = getattr(tool, "__agentloom_tool__", None)
        if maker is None:
            name = getattr(tool, "__qualname__", repr(tool))
            raise TypeError(
                f"{name} is no tool: what is approved is a call of a function decorated with @tool"
            )
        declare_annotations(tool)
        bound = inspect.signature(tool).bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        arguments = {name: encode(value, TYPES) for name, value in given.items()}
        shown, asked = _parts(in_effect("tool/1", maker.change), given)
        return cls(tool, args, kwargs, str(maker.name), arguments, schema_of_tool(tool), shown, asked)


def _parts(rule: Profile, arguments: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Arguments without what the tool says is secret; and without what it says is only noted, too."""
    request: dict[str, object] = {"args": arguments}
    if all_key(rule, request):
        return arguments, arguments
    parts = split(rule, request)
    scope = current()
    redactor = None if scope is None else scope.session.engine.redactor
    if parts.secret_paths and redactor is not None:
        redactor.learn_request(rule, request)
    tree = cast("dict[str, Tree]", encode(parts.written(request), TYPES))
    asked = parts_of(rule, tree, "key") if not rule.whole else tree
    shown, compared = (cast("dict[str, object]", decode(one.get("args", {}), TYPES)) for one in (tree, asked))
    return shown, compared


class Grant:
    """What ``approve`` gives. True where it was granted; then ``grant()`` makes the approved call, or ``grant(tool,
    ...)`` a call that has to be the very same one (awaited where the tool is async).

    ``by``: who decided; ``reason``: what they said; ``expires``: until when it holds, nanoseconds since 1970, or None.
    """

    __slots__ = ("_used", "_wanted", "at", "by", "expires", "granted", "reason")

    def __init__(
        self,
        wanted: Wanted,
        *,
        granted: bool,
        by: str | None,
        at: int,
        reason: str | None,
        expires: int | None,
    ) -> None:
        self._wanted = wanted
        self._used = False
        self.granted = granted
        self.by = by
        self.at = at
        self.reason = reason
        self.expires = expires

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self._wanted.name

    def __bool__(self) -> bool:
        return self.granted

    def __repr__(self) -> str:
        said = "granted" if self.granted else "denied"
        return f"<grant of {self.tool}: {said}{f' by {self.by}' if self.by else ''}>"

    def __call__(self, tool: Any = None, /, *args: Any, **kwargs: Any) -> Any:
        """Make the call that was approved, once. ``GrantRefused`` says why not: ``denied``, ``tool``, ``schema``,
        ``arguments``, ``expired``, ``used``; nothing was called then."""
        wanted = self._wanted
        if tool is None and (args or kwargs):
            raise TypeError(
                "grant(tool, ...) with the arguments of the call, or grant() for the one that was approved"
            )
        now = (
            Wanted.of(wanted.tool, wanted.args, wanted.kwargs)
            if tool is None
            else Wanted.of(tool, args, kwargs)
        )
        scope = taking_part("a grant")
        self._check(now, time.time_ns() if scope is None else run_clock(scope.session))
        self._used = True
        mark("note", {"approved": {"tool": self.tool, "by": self.by, "at": self.at}})
        return now.tool(*now.args, **now.kwargs)

    def _check(self, now: Wanted, clock: int) -> None:
        wanted = self._wanted
        if not self.granted:
            raise self._refusal(
                "denied", f"was denied{_by(self.by)}{f': {self.reason}' if self.reason else ''}"
            )
        if now.name != wanted.name:
            raise self._refusal("tool", f"is for {wanted.name}, and not for {now.name}")
        if now.schema != wanted.schema:
            names = [
                name
                for name in (now.schema | wanted.schema)
                if now.schema.get(name) != wanted.schema.get(name)
            ]
            raise self._refusal("schema", f"was given before the tool changed: {', '.join(names)}")
        if canonical(dict(now.arguments)) != canonical(dict(wanted.arguments)):
            names = [
                name for name in wanted.arguments if _other(now.arguments.get(name), wanted.arguments[name])
            ]
            raise self._refusal(
                "arguments", f"is for other arguments: {', '.join(names)} is not what was approved"
            )
        if self.expires is not None and clock >= self.expires:
            raise self._refusal("expired", f"held until {moment(self.expires)}")
        if self._used:
            raise self._refusal("used", "was used before: it holds for one call")

    def _refusal(self, why: str, what: str) -> GrantRefused:
        return GrantRefused(
            f"{self.tool} was not called: its approval {what}",
            hint="ask again: approve(tool, ...) with what is to be done now",
            why=why, tool=self.tool, by=self.by,
        )  # fmt: skip


def _other(one: Tree, two: Tree) -> bool:
    return canonical(one) != canonical(two)


def _by(who: str | None) -> str:
    return f" by {who}" if who else ""
