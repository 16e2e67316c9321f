"""``Retry``: when and how often something that failed is tried again. Deterministic code around recorded waits.

Everything that a policy does is in the trace: each attempt is a call of its own (``root/support#3``, ``#3~2``), each
wait a ``sleep`` call and each jitter a ``random`` draw, both below a ``retry`` segment of the path. So a replay makes
the same attempts without waiting, and a policy that was changed meanwhile diverges where it asks for something else.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from agentloom.api.workflow_events import told_retry
from agentloom.errors import ControlFlow, ModelError, NotSupported
from agentloom.runtime import host
from agentloom.runtime.ambient import random_call
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.scope import Attempts, Scope, entered

__all__ = ["On", "Retry", "attempted", "attempted_sync", "policy_of", "retrying", "retrying_sync"]

T = TypeVar("T")

Kind = Literal[
    "rate_limit",
    "quota",
    "overload",
    "context_length",
    "content_filter",
    "auth",
    "not_found",
    "bad_request",
    "server",
    "connection",
    "timeout",
    "malformed",
]
One: TypeAlias = type[BaseException] | Kind
On: TypeAlias = One | Iterable[One] | Callable[[BaseException], object]
_KINDS: tuple[str, ...] = Kind.__args__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Retry:
    """At most ``attempts`` in all. Before attempt n + 1 it waits ``delay * factor ** (n - 1)`` seconds, at most
    ``longest``, give or take the share ``jitter`` of it (0.1: a tenth), drawn from the run's generator.

    Where a provider said how long to wait, that is waited for if it is longer, plus jitter; when it is longer than
    ``longest``, there is no further attempt, for it would come too early.

    ``on`` says which errors may pass: exception classes, kinds of ``ModelError`` (``"rate_limit"``), several of them,
    or a function of the error. Default: a ``ModelError`` that is ``retryable``, and an attempt that took longer than
    its ``timeout``. Cancellations and Ctrl-C are never tried again. ``ValueError`` for numbers that make no sense.
    """

    attempts: int = 3
    delay: float = 1.0
    factor: float = 2.0
    longest: float = 60.0
    jitter: float = 0.1
    on: On | None = None

    def __post_init__(self) -> None:
        bounds = {
            "attempts": (1, math.inf),
            "delay": (0, math.inf),
            "factor": (1, math.inf),
            "longest": (0, math.inf),
            "jitter": (0, 1),
        }
        for name, (least, most) in bounds.items():
            given = getattr(self, name)
            number = isinstance(given, int | float) and not isinstance(given, bool)
            if not number or not least <= given <= most or (name != "longest" and math.isinf(given)):
                end = "" if most == math.inf else f" to {most}"
                raise ValueError(f"Retry({name}={given!r}): a number from {least}{end}")
        if type(self.attempts) is not int:
            raise ValueError(f"Retry(attempts={self.attempts!r}): a whole number from 1")
        if self.on is not None and (isinstance(self.on, str | type) or not callable(self.on)):
            object.__setattr__(self, "on", _checked(cast("object", self.on)))

    def may_pass(self, error: BaseException, *, timed_out: bool = False) -> bool:
        """Whether ``error`` is one to try again after. ``timed_out``: it is the end of an attempt's own ``timeout``."""
        if isinstance(error, ControlFlow | asyncio.CancelledError | KeyboardInterrupt | GeneratorExit):
            return False
        if self.on is None:
            return timed_out or (isinstance(error, ModelError) and error.retryable)
        if callable(self.on) and not isinstance(self.on, type):
            return bool(self.on(error))
        ways = cast("tuple[One, ...]", self.on)
        kind = error.kind if isinstance(error, ModelError) else None
        return any(kind == way if isinstance(way, str) else isinstance(error, way) for way in ways)

    def wait(self, attempt: int, asked: float | None, draw: float) -> float:
        """Seconds to wait after attempt number ``attempt`` failed; ``asked``: what the provider asked for; ``draw``: a
        number from 0 to 1. Whole milliseconds, never less than ``asked``."""
        try:
            grown = self.delay * self.factor ** (attempt - 1)
        except OverflowError:
            grown = math.inf
        own = min(grown, self.longest, 1e9) if self.delay else 0.0
        wait = own * (1 - self.jitter + 2 * self.jitter * draw)
        if asked is not None and asked > wait:
            wait = asked * (1 + self.jitter * draw)
        whole = math.ceil(round(wait * 1000, 6))
        if asked is not None and whole / 1000 < asked:
            whole += 1
        return whole / 1000


def _checked(on: object) -> tuple[One, ...]:
    if not isinstance(on, str | type | Iterable):
        raise TypeError(
            f"Retry(on={on!r}): exception classes, kinds of ModelError, or a function of the error"
        )
    ways = (on,) if isinstance(on, str | type) else tuple(cast("Iterable[object]", on))
    for way in ways:
        if isinstance(way, str) and way not in _KINDS:
            raise ValueError(f"Retry(on={way!r}): no kind of ModelError; they are {', '.join(_KINDS)}")
        if not isinstance(way, str) and not (isinstance(way, type) and issubclass(way, BaseException)):
            raise TypeError(f"Retry(on=...): {way!r} is neither an exception class nor a kind of ModelError")
    if not ways:
        raise ValueError("Retry(on=()): nothing would ever be tried again; leave retry= out")
    return cast("tuple[One, ...]", ways)


def policy_of(retry: Retry | int | None) -> Retry | None:
    """``retry=3`` is ``Retry(attempts=3)``. ``TypeError`` for anything else."""
    if retry is None or isinstance(retry, Retry):
        return retry
    if type(retry) is int:
        return Retry(attempts=retry)
    raise TypeError(f"retry= takes a Retry or a number of attempts, not {type(retry).__name__}")


# -- one piece of work, tried until it succeeds ----------------------------------------------------------------------


class _Tries:
    """The attempts at one piece of work so far, for both drivers."""

    def __init__(self, policy: Retry, scope: Scope | None) -> None:
        self.policy = policy
        self.number = 1
        self._scope = scope
        self._waits: Scope | None = None

    def wait_after(self, error: BaseException, *, timed_out: bool) -> float | None:
        """How long to wait before the next attempt; None when there is none, and then a note at the error says why."""
        policy = self.policy
        if not policy.may_pass(error, timed_out=timed_out):
            return None
        if self.number >= policy.attempts:
            if self.number > 1:
                error.add_note(f"after {self.number} attempts")
            return None
        asked = error.delay if isinstance(error, ModelError) else None
        if asked is not None and asked > policy.longest:
            limit = f"longer than Retry(longest={policy.longest:g})"
            error.add_note(f"not tried again: the provider asks to wait {asked:g} s, {limit}")
            return None
        with entered(self.waits):
            draw = cast(float, call_inline(*random_call())) if policy.jitter else 0.5
        wait = policy.wait(self.number, asked, draw)
        told_retry(self.number, wait, error)
        return wait

    @property
    def waits(self) -> Scope | None:
        """Where waits and draws are recorded: beside the work, so that they shift none of its calls."""
        if self._waits is None and self._scope is not None:
            self._waits = self._scope.child("retry")
        return self._waits


@contextmanager
def _attempts(scope: Scope | None) -> Generator[Callable[[], None]]:
    """What to call before each attempt but the first."""
    if scope is None:
        yield lambda: None
        return
    attempts = Attempts(scope)
    try:
        yield attempts.again
    finally:
        attempts.end()


async def attempted(
    policy: Retry | None,
    timeout: float | None,  # noqa: ASYNC109 - of each attempt, not of the whole
    once: Callable[[], Awaitable[T]],
) -> T:
    """What ``once`` gives, called anew after each error that ``policy`` lets pass. ``timeout``: seconds of the run's
    time that each attempt may take; then it is cancelled, and ends with ``TimeoutError``."""
    if policy is None or policy.attempts == 1:
        return await _Timed(timeout, once).call()
    scope = taking_part("retry")
    tries = _Tries(policy, scope)
    with _attempts(scope) as again:
        while True:
            attempt = _Timed(timeout, once)
            try:
                return await attempt.call()
            except BaseException as error:
                wait = tries.wait_after(error, timed_out=attempt.over)
                if wait is None:
                    raise
            with entered(tries.waits):
                await call_async(host.sleep_spec(wait), host.perform_sleep)
            tries.number += 1
            again()


def attempted_sync(policy: Retry | None, once: Callable[[], T]) -> T:
    """As ``attempted``, for sync agents; an attempt cannot be cut short there."""
    if policy is None or policy.attempts == 1:
        return once()
    scope = taking_part("retry")
    tries = _Tries(policy, scope)
    with _attempts(scope) as again:
        while True:
            try:
                return once()
            except BaseException as error:
                wait = tries.wait_after(error, timed_out=False)
                if wait is None:
                    raise
            with entered(tries.waits):
                call_inline(host.sleep_spec(wait), host.perform_sleep_sync)
            tries.number += 1
            again()


class _Timed(Generic[T]):
    """One attempt, which may take so long and no longer. ``over``: it was cut short for that."""

    def __init__(self, timeout: float | None, once: Callable[[], Awaitable[T]]) -> None:
        self.over = False
        self._timeout = timeout
        self._once = once

    async def call(self) -> T:
        if self._timeout is None:
            return await self._once()
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await self._once()
        except TimeoutError as error:
            if not limit.expired():
                raise
            self.over = True
            raise TimeoutError(f"it took longer than timeout={self._timeout:g} s") from error


# -- for agents ------------------------------------------------------------------------------------------------------


async def retrying(
    policy: Retry | int,
    function: Callable[..., Awaitable[T]],
    /,
    *args: Any,
    timeout: float | None = None,  # noqa: ASYNC109 - of each attempt, not of the whole
) -> T:
    """``await function(*args)``, called anew after each error that ``policy`` lets pass; raises the last one.

    ``timeout``: seconds that each attempt may take. Calls made again keep their ids, told apart by ``~attempt``.
    """
    taking_part("retrying")
    return await attempted(policy_of(policy), timeout, lambda: function(*args))


def retrying_sync(
    policy: Retry | int, function: Callable[..., T], /, *args: Any, timeout: float | None = None
) -> T:
    """``function(*args)``, called anew after each error that ``policy`` lets pass; see ``agentloom.retrying``."""
    host.refuse_async("retrying", function)
    if timeout is not None:
        raise NotSupported(
            "agentloom.sync.retrying() was given timeout=; a synchronous attempt cannot be stopped while it runs",
            hint="give timeout= to model(...) or http(...), or await agentloom.retrying(...) in an async agent",
        )
    return attempted_sync(policy_of(policy), lambda: function(*args))
