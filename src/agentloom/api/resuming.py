"""``resume``: go on with a run whose process has ended, in the same trace."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from agentloom.api.recording_mode import StoreLike
from agentloom.api.trace import Trace, agent_function
from agentloom.api.tracebacks import UserFrames
from agentloom.errors import NotSupported, Suspend, Suspended, TargetError
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.live_waits import Answerer
from agentloom.runtime.recorder import record_async, record_blocking
from agentloom.runtime.scope import current
from agentloom.store import Store, open_store

if TYPE_CHECKING:
    from agentloom.replay.resuming import Resumption

__all__ = ["aresume", "resume", "suspended", "waiting"]


def resume(
    run: str = "last",
    agent: object = None,
    *,
    store: StoreLike = None,
    retry_failed: bool = False,
    answerer: Answerer | None = None,
) -> Trace:
    """Go on with a run that was left waiting, or whose process died: replay what was recorded, then live, into the
    same trace. Returns the trace when it has ended; raises what the agent raises.

    ``run``: an id, a unique prefix, a tag, ``last``. ``agent``: the agent or workflow (default: the one that the trace
    names, where its module is loaded). ``retry_failed``: of a run that failed, the last call that failed is tried
    again. ``answerer`` asks who is there at once.

    ``Suspended``: it waits (again). ``DivergenceError``: the code no longer fits what was recorded; the run is left as
    it was. ``LeaseHeld``: another process has it. ``NotSupported``: it has ended, or is no run of an agent.
    """
    with UserFrames():
        chosen, run_id, function = _found(run, agent, store, "resume")
        if function.is_async:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                work = _resumed(function, chosen, run_id, retry_failed, answerer)
                asyncio.run(work)
            else:
                raise NotSupported(
                    "resume() was called where an event loop is running", hint="await aresume(...) there"
                )
        else:
            resumption = _begun(function, chosen, run_id, None, retry_failed, answerer)
            try:
                record_blocking(resumption.run, function)
            except BaseException as error:  # noqa: BLE001 - what is raised in its place says more
                raise _what(resumption, error, chosen) from error.__cause__
        return Trace.of_run(run_id, chosen, function)


async def aresume(
    run: str = "last",
    agent: object = None,
    *,
    store: StoreLike = None,
    retry_failed: bool = False,
    answerer: Answerer | None = None,
) -> Trace:
    """As ``resume``, inside a running event loop, which performs the host work."""
    with UserFrames():
        chosen, run_id, function = _found(run, agent, store, "aresume")
        if function.is_async:
            await _resumed(function, chosen, run_id, retry_failed, answerer)
            return Trace.of_run(run_id, chosen, function)
        return resume(run_id, function, store=chosen, retry_failed=retry_failed, answerer=answerer)


async def _resumed(
    function: AgentFunction,
    store: Store,
    run: str,
    retry_failed: bool,
    answerer: Answerer | None,
) -> None:
    resumption = _begun(function, store, run, asyncio.get_running_loop(), retry_failed, answerer)
    try:
        await record_async(resumption.run, function)
    except BaseException as error:  # noqa: BLE001 - what is raised in its place says more
        raise _what(resumption, error, store) from error.__cause__


def _begun(
    function: AgentFunction,
    store: Store,
    run: str,
    outer: asyncio.AbstractEventLoop | None,
    retry_failed: bool,
    answerer: Answerer | None,
) -> Resumption:
    from agentloom.replay.resuming import begin_again

    return begin_again(function, store, run, outer=outer, retry_failed=retry_failed, answerer=answerer)


def _found(run: str, agent: object, store: StoreLike, what: str) -> tuple[Store, str, AgentFunction]:
    scope = current()
    if scope is not None:
        raise NotSupported(
            f"{what}() was called inside a run of {scope.session.agent}",
            hint="a program that resumes runs is no part of one",
        )
    chosen = open_store(store)
    run_id = chosen.resolve(run)
    if isinstance(agent, AgentFunction):
        return chosen, run_id, agent
    if agent is not None:
        return chosen, run_id, agent_function(agent)
    return chosen, run_id, agent_function(_loaded(Trace.of_run(run_id, chosen, None)))


def _loaded(trace: Trace) -> object:
    """The agent that the trace names, where its module is loaded in this process."""
    entered = str(trace.journal.entries[0].get("entry", ""))
    module, _, qualname = entered.partition(":")
    found: object = sys.modules.get(module)
    for name in qualname.split(".") if found is not None else ():
        found = getattr(found, name, None)
    if found is None:
        raise TargetError(
            f"the agent of run {trace.run_id} ({entered}) is not loaded in this process",
            hint=f"resume(run, agent) with the agent or workflow; or: agentloom resume {trace.run_id}",
        )
    return found


def _what(resumption: Resumption, error: BaseException, store: Store) -> BaseException:
    """What is raised where ``error`` came out of the run."""
    judged = resumption.judged(error)
    if isinstance(judged, Suspend):
        return suspended(resumption.run.run_id, store, judged.due)
    return judged


def suspended(run: str, store: Store, due: int | None) -> Suspended:
    """The error for a run that waits."""
    return waiting(Trace.of_run(run, store, None), due)


def waiting(trace: Trace, due: int | None = None) -> Suspended:
    """The error for a run that waits, from its trace."""
    run, asks = trace.run_id, trace.asks
    words = "; ".join(str(ask) for ask in asks) or "a time"
    return Suspended(
        f"run {run} is suspended and waits for: {words}",
        hint=f"agentloom inbox; agentloom answer {run[-4:]} VALUE; agentloom resume {run[-4:]}",
        run=run,
        asks=asks,
        due=due,
    )
