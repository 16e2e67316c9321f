"""One call of a plain function as a run: where it stands, with the threads that it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from agentloom.api.recording_keep import Keep, held, settled
from agentloom.api.recording_mode import left_alone_here, mode, trace_to_replay
from agentloom.api.recording_run import Outcome
from agentloom.api.recording_target import Target
from agentloom.api.trace import RunNote
from agentloom.api.tracebacks import UserFrames
from agentloom.runtime.left_out import OFF, left_out
from agentloom.runtime.live import LiveSource
from agentloom.runtime.loading import refuse_while_loading
from agentloom.runtime.recorder import RunOptions, begin, record_blocking
from agentloom.runtime.scope import current, entered
from agentloom.runtime.stock import LiveInPlace, StockCalls
from agentloom.store import Store

__all__ = ["record_call"]

R = TypeVar("R")


def record_call(
    function: Callable[..., R],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    target: Target,
    options: RunOptions,
    store: Store | None,
    keep: Keep = "all",
) -> R:
    """Call ``function``: recorded, replayed, or left alone. Its value and its exceptions are its own.

    Threads and pools that it starts are adopted; calls that it awaits on loops of its own are made in place.
    """
    with UserFrames():
        scope = current()
        if scope is not None:
            with entered(scope.started(target.hidden().name)):
                return function(*args, **kwargs)
        if left_alone_here() is not None:
            return function(*args, **kwargs)
        refuse_while_loading(target.name)
        chosen = mode()
        if chosen == "off":
            with left_out(OFF):
                return function(*args, **kwargs)
        target = target.hidden()
        outcome = Outcome[R]()

        def main(*_: Any, **__: Any) -> object:
            return outcome.of_call(lambda: function(*args, **kwargs))

        if chosen == "replay":
            from agentloom.api.recording_again import replay_in_place

            replay_in_place(trace_to_replay(target.name, options.tags, store), target, main)
            return outcome.again()
        _recorded(main, target, options, held(store, keep))
        return cast(R, outcome.value)


def _recorded(main: Callable[..., object], target: Target, options: RunOptions, store: Store) -> None:
    agent = target.agent(main, options.guard)
    recording = begin(
        agent, target.args, target.kwargs, store=store, options=options, outer=None, code=target.code(agent)
    )
    session = recording.session
    session.stock = StockCalls(LiveInPlace(cast(LiveSource, session.source)))
    session.root.src = session.engine.places.caller()
    try:
        record_blocking(recording, agent)
    except BaseException as error:
        if settled(store):
            error.add_note(RunNote.of(recording.run_id, store, target.again()))
        raise
    settled(store)
