"""``@agent``: a user's function whose runs are recorded."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from agentloom.api.recording_mode import StoreLike, left_alone_here, mode, opened, trace_to_replay
from agentloom.api.trace import RunNote, Trace, known_by
from agentloom.api.tracebacks import UserFrames
from agentloom.errors import DivergenceError, NotSupported, Suspend, Suspended
from agentloom.runtime.agents import AgentFunction, call_child, call_child_async, refuse_awaited
from agentloom.runtime.guard import GuardPolicy, chosen_policy
from agentloom.runtime.left_out import refuse_run
from agentloom.runtime.loading import refuse_while_loading
from agentloom.runtime.profiles import Profile
from agentloom.runtime.recorder import Recording, RunOptions, begin, record_async, record_blocking
from agentloom.runtime.redaction_rules import Rules, checked_rules, use_secrets
from agentloom.runtime.scope import Scope, current
from agentloom.store import MemoryStore, Store, open_store

if TYPE_CHECKING:
    from agentloom.replay.report import Report

__all__ = ["Agent", "agent"]

P = ParamSpec("P")
R = TypeVar("R")


class Agent(Generic[P, R]):
    """An async or sync function under agentloom.

    Called outside a run it is just the function; called inside a run it is a child agent, whose calls are part of
    that run. ``run`` and ``arun`` record a run of its own.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str | None = None,
        profiles: Iterable[Profile] = (),
        guard: GuardPolicy | None = None,
        secrets: Rules | None = None,
    ) -> None:
        rules = checked_rules("agent(secrets=)", secrets)
        policy = None if guard is None else chosen_policy(guard)
        self.function = AgentFunction.of(function, name, profiles, policy, rules)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        scope = current()
        if scope is None:
            return cast(R, self.function.function(*args, **kwargs))
        if self.function.is_async:
            refuse_awaited(scope, self.function)
            return cast(R, call_child_async(self.function, args, kwargs))
        return cast(R, call_child(scope, self.function, args, kwargs))

    def run(
        self,
        *args: Any,
        seed: int | None = None,
        store: StoreLike = None,
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
        guard: GuardPolicy | None = None,
        secrets: Rules | None = None,
        **kwargs: Any,
    ) -> Trace:
        """Run to the end and return the trace. Raises what the agent raises; ``trace_of(error)`` is its trace.

        ``store`` is a store or the folder of one (default: ``AGENTLOOM_STORE``, else ``.agentloom``); ``guard`` the
        policy of this run (default: the agent's), ``secrets`` rules for it alone. An async agent gets an event
        loop for its host work; where one is running already, use ``arun``. Under ``AGENTLOOM=replay`` the run
        is replayed and its trace returned; under ``off`` it is kept in memory alone.
        """
        with UserFrames():
            self._refuse_inside(current())
            options = RunOptions(
                seed, tags or {}, conversation, guard, checked_rules("run(secrets=)", secrets)
            )
            chosen = _store(store)
            if chosen is None:
                return self._replayed(self._replay(args, kwargs, store, options)[0])
            if not self.function.is_async:
                return self._recorded(self._begin(args, kwargs, chosen, options, None))
            if loop_is_running():
                raise NotSupported(
                    f"{self.function.name}.run() was called where an event loop is running",
                    hint=f"await {self.function.name}.arun(...) there",
                )
            # Not the trace: asyncio.run writes the text of its task's result when it looks up the handler of Ctrl-C.
            run_id = asyncio.run(self._awaited(args, kwargs, chosen, options))
            return Trace.of_run(run_id, chosen, self.function)

    async def arun(
        self,
        *args: Any,
        seed: int | None = None,
        store: StoreLike = None,
        tags: Mapping[str, str] | None = None,
        conversation: str | None = None,
        guard: GuardPolicy | None = None,
        secrets: Rules | None = None,
        **kwargs: Any,
    ) -> Trace:
        """As ``run``, inside a running event loop, which performs the host work. A sync agent blocks it meanwhile."""
        with UserFrames():
            self._refuse_inside(current())
            options = RunOptions(
                seed, tags or {}, conversation, guard, checked_rules("run(secrets=)", secrets)
            )
            chosen = _store(store)
            if chosen is None:
                trace, report = self._replay(args, kwargs, store, options)
                from agentloom.api.recording_cancelled import await_cancellation

                await await_cancellation(trace, report)
                return self._replayed(trace)
            if not self.function.is_async:
                return self._recorded(self._begin(args, kwargs, chosen, options, None))
            run_id = await self._awaited(args, kwargs, chosen, options)
            return Trace.of_run(run_id, chosen, self.function)

    def _refuse_inside(self, scope: Scope | None) -> None:
        """A run started by another agent's own code would be an effect that its trace does not hold."""
        refuse_while_loading(self.function.name)
        if left_alone_here() is not None:
            refuse_run(f"{self.function.name}.run()")
        if scope is not None:
            raise NotSupported(
                f"{self.function.name}.run() was called inside a run of {scope.session.agent}",
                hint=f"call {self.function.name}(...) there, as a child agent of that run (await it where it is async);"
                " a program that starts runs by itself is started with python, not with `agentloom run`",
            )

    async def _awaited(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], store: Store, options: RunOptions
    ) -> str:
        """Run to the end in the running loop; the run's id."""
        recording = self._begin(args, kwargs, store, options, asyncio.get_running_loop())
        try:
            await record_async(recording, self.function)
        except Suspend as left:
            raise _suspended(recording, left) from None
        except BaseException as error:
            _say_where(error, recording, self.function)
            raise
        return recording.run_id

    def _recorded(self, recording: Recording) -> Trace:
        try:
            record_blocking(recording, self.function)
        except Suspend as left:
            raise _suspended(recording, left) from None
        except BaseException as error:
            _say_where(error, recording, self.function)
            raise
        return Trace.of_run(recording.run_id, recording.store, self.function)

    def _replay(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], store: StoreLike, options: RunOptions
    ) -> tuple[Trace, Report]:
        """Replay in the place of a run, with the arguments given now."""
        from agentloom.replay.replayer import replay

        trace = trace_to_replay(self.function.name, options.tags, opened(store))
        given: dict[str, Any] = {"args": list(args), "kwargs": dict(kwargs)}
        with use_secrets(options.secrets):
            report = replay(trace.journal, self.function, given=given)
        if report.verdict == "diverged":
            raise DivergenceError(report)
        return trace, report

    def _replayed(self, trace: Trace) -> Trace:
        """What a replayed run gives. Raises what the agent raised, as recorded."""
        error = trace.error
        if error is not None:
            raise error
        if trace.status == "suspended":
            from agentloom.api.resuming import waiting

            raise waiting(trace)
        if trace.status == "cancelled":
            raise asyncio.CancelledError if loop_is_running() else KeyboardInterrupt
        return known_by(trace, self.function)

    def _begin(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        store: Store,
        options: RunOptions,
        outer: asyncio.AbstractEventLoop | None,
    ) -> Recording:
        from agentloom.runtime.live_waits import answerer

        return begin(
            self.function, args, kwargs, store=store, options=options, outer=outer, resumes=mode() == "record",
            answerer=answerer(),
        )  # fmt: skip


def _store(store: StoreLike) -> Store | None:
    """Where a run that begins here is written; None where it is to be replayed."""
    chosen = mode()
    if chosen == "record":
        return open_store(store)
    return MemoryStore() if chosen == "off" else None


def _suspended(recording: Recording, left: Suspend) -> Suspended:
    from agentloom.api.resuming import suspended

    return suspended(recording.run_id, recording.store, left.due)


def _say_where(error: BaseException, recording: Recording, agent: AgentFunction) -> None:
    error.add_note(RunNote.of(recording.run_id, recording.store, agent))


def loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@overload
def agent(function: Callable[P, Coroutine[Any, Any, R]], /) -> Agent[P, Coroutine[Any, Any, R]]: ...
@overload
def agent(function: Callable[P, R], /) -> Agent[P, R]: ...
@overload
def agent(
    *,
    name: str | None = None,
    profiles: Iterable[Profile] = (),
    guard: GuardPolicy | None = None,
    secrets: Rules | None = None,
) -> Callable[[Callable[P, R]], Agent[P, R]]: ...
def agent(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    profiles: Iterable[Profile] = (),
    guard: GuardPolicy | None = None,
    secrets: Rules | None = None,
) -> Any:
    """Make a function an agent (decorator). ``name`` is what runs are listed under; default: the function's name.
    ``profiles`` (see ``profile``) sort the fields of the requests made in it; ``guard`` is the policy of its runs,
    ``secrets`` what is kept out of them (see ``secrets``)."""
    if function is None:

        def decorate(chosen: Callable[..., Any]) -> Agent[..., Any]:
            return Agent(chosen, name, profiles, guard, secrets)

        return decorate
    return Agent(function, name, profiles, guard, secrets)
