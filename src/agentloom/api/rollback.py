"""``rollback``: take back what a run has done, newest first, each once.

Taking back is a run of its own, which says whose calls it takes back: it is recorded, survives the death of its
process, and what of it is in doubt is asked about, as in any run. That there is one is kept in the mail of the run that
is taken back, where exactly one of several that begin at once wins.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, cast

from agentloom.api.agent import agent
from agentloom.api.recording_mode import StoreLike
from agentloom.api.resuming import resume
from agentloom.api.trace import Trace, TraceCall
from agentloom.errors import LeaseHeld, MailTaken, NotSupported, TargetError
from agentloom.runtime.contexts import put
from agentloom.runtime.scope import require
from agentloom.runtime.tools import tool, wrap_tool
from agentloom.runtime.undoing import Undo, undo_of
from agentloom.store import Store, open_store
from agentloom.store.mail import Mail

__all__ = ["ROLLBACK", "TakenBack", "plan_of", "rollback", "undo_calls"]

ROLLBACK = "rollback"
"""Name and key of the mail that says which run takes back a run."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A call that is to be taken back: its number, id and tool, what it was given, what it returned."""

    number: int
    call: str
    tool: str
    args: dict[str, Any]
    result: Any


@agent(name="rollback")
async def undo_calls(run: str, calls: list[dict[str, Any]]) -> list[int]:
    """Take back ``calls`` of ``run``, in their order. Returns their numbers."""
    _claim(run, require("rollback").session.run_id)
    done: list[int] = []
    for one in calls:
        undo = _undo_for(one, run)
        function = undo.function
        if not hasattr(function, "__agentloom_tool__"):
            function = wrap_tool(function)
        value = cast("Any", function(**undo.given(one["args"], one["result"])))
        if inspect.isawaitable(value):
            await value
        done.append(one["number"])
    return done


def _undo_for(one: dict[str, Any], run: str) -> Undo:
    undo = undo_of(one["tool"])
    if undo is None:
        raise TargetError(
            f"nothing here takes back tool {one['tool']} (call {one['number']} of run {run})",
            hint="import the module that declares it with @tool(undo=...) first",
        )
    return undo


def plan_of(trace: Trace) -> tuple[list[TakenBack], list[TraceCall]]:
    """The calls of a run that can be taken back, newest first; and those that wrote something and cannot."""
    can: list[TakenBack] = []
    cannot: list[TraceCall] = []
    for call in reversed(trace.calls):
        if call.kind != "tool" or call.effect != "write" or call.status != "ok":
            continue
        if undo_of(call.name) is None:
            cannot.append(call)
        else:
            can.append(TakenBack(call.number, call.id, call.name, call.request["args"], call.result))
    return can, cannot


def rollback(run: str = "last", *, store: StoreLike = None) -> Trace:
    """Take back what a run has done: each call of a tool that is declared ``@tool(undo=...)``, wrote something and
    ended well, newest first, each once. Returns the trace of the run that did it.

    Called again it goes on where it stopped (a process that died, an ``undo`` that failed), and does nothing where all
    is done. ``LeaseHeld``: the run is under way, or is being taken back. ``NotSupported``: it has not ended, or has
    nothing to take back. ``Suspended``: an ``undo`` was under way when the process died; answer whether it happened.
    """
    chosen = open_store(store)
    run_id = chosen.resolve(run)
    with _using(chosen):
        before = next((str(one.value) for one in chosen.mail(run_id) if _is_claim(one)), None)
        if before is not None:
            return _gone_on(chosen, before, run_id)
        chosen.reopen(run_id).close()  # raises where somebody writes it
        calls = _calls_of(Trace.of_run(run_id, chosen, None))
        return undo_calls.run(run_id, calls, store=chosen, tags={ROLLBACK: run_id})


def _calls_of(trace: Trace) -> list[dict[str, Any]]:
    run = trace.run_id
    doubt = [call for call in trace.calls if call.status is None and call.effect == "write"]
    if doubt:
        raise NotSupported(
            f"call {doubt[0].number} ({doubt[0].name}) of run {run} is in doubt: nobody knows whether it happened",
            hint=f"agentloom resume {run[-4:]} asks about it; then take the run back",
            run=run,
        )
    if trace.status in ("suspended", "unfinished"):
        raise NotSupported(
            f"run {run} has not ended ({trace.status}), and would go on with what is taken back",
            hint=f"agentloom cancel {run[-4:]}, then take it back",
            run=run,
        )
    can, _ = plan_of(trace)
    if not can:
        raise NotSupported(
            f"run {run} has no call that can be taken back",
            hint="a tool says how with @tool(undo=...)",
            run=run,
        )
    return [asdict(one) for one in can]


def _gone_on(store: Store, before: str, run: str) -> Trace:
    trace = Trace.of_run(before, store, undo_calls.function)
    if trace.status == "completed":
        return trace
    if trace.status == "cancelled":
        raise NotSupported(
            f"run {before}, which took back run {run}, was cancelled, and is not gone on with",
            hint=f"agentloom show {before[-4:]} says how far it came; take back the rest by hand",
            run=run,
        )
    for one in trace.input["args"][1]:
        _undo_for(one, run)  # before it is gone on with: what its own code raises would be its end
    return resume(before, undo_calls, store=store, retry_failed=trace.status == "failed")


# -- which run takes it back ------------------------------------------------------------------------------------------

_store: ContextVar[Store | None] = ContextVar("agentloom.rollback", default=None)


@contextmanager
def _using(store: Store) -> Generator[None]:
    token = put(_store, store)
    try:
        yield
    finally:
        _store.reset(token)


def _is_claim(mail: Mail) -> bool:
    return mail.kind == "signal" and mail.key == ROLLBACK


@tool(idempotent=True, name="claim")
def _claim(run: str, by: str) -> None:
    """From now on the run ``by`` takes back ``run``, and no other."""
    store = _store.get()
    if store is None:
        raise NotSupported(
            "a rollback is gone on with by rollback(run) alone", hint=f"agentloom rollback {run}"
        )
    try:
        store.post(run, Mail("signal", ROLLBACK, ROLLBACK, value=by, at=time.time_ns(), via="api"))
    except MailTaken as taken:
        if taken.existing.value != by:
            raise LeaseHeld(
                f"run {run} is taken back by run {taken.existing.value}",
                hint="agentloom rollback again",
                run=run,
            ) from None
