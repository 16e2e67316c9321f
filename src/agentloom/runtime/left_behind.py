"""What a run leaves behind at its end: told in the log, for the trace does not hold it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentloom.runtime.calls import Call
from agentloom.runtime.scope import outside

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["tell_calls", "tell_stream", "tell_tasks"]

_NAMED = 3  # that a message names
_GOES_ON = (
    "it goes on as it would without the run, and what comes of it is not in the trace. If it should be: await it before"
    " the run ends"
)
_SOON = 0.05
"""Seconds after which a loop is known to go on: that of ``asyncio.run`` cancels what is left over too, and closes."""
_log = logging.getLogger("agentloom.recording")


def tell_calls(session: Session, calls: Sequence[Call]) -> None:
    """These calls were under way when the run ended. Of a stream it is told when it is read on: many are left where
    they are, and nothing more comes of them."""
    calls = [call for call in calls if not call.spec.stream]
    if calls:
        _tell(session, f"{_list([_named(call) for call in calls])} {_was(calls)} under way")


def tell_stream(session: Session, call: Call) -> None:
    """This stream is read on after the end of its run."""
    _tell(session, f"the stream of {_named(call)} was open")


def tell_tasks(session: Session, names: Sequence[str]) -> None:
    """The loop of the run ended, and cancelled the tasks with these names. Told where the loop around it goes on."""
    run, agent = session.run_id, session.agent

    def tell() -> None:
        _log.warning(
            "run %s of %s cancelled what it had started and not awaited: %s. Its loop ends with it, as that of"
            " asyncio.run does. To change it: await that before the run ends, start it outside of the run, or record"
            ' the code where it stands: with agentloom.record("%s")',
            run, agent, _list(names), agent,
        )  # fmt: skip

    if names:
        asyncio.get_running_loop().call_later(_SOON, tell, context=outside())


def _tell(session: Session, what: str) -> None:
    _log.warning("run %s of %s ended while %s: %s", session.run_id, session.agent, what, _GOES_ON)


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _was(calls: Sequence[Call]) -> str:
    return "was" if len(calls) == 1 else "were"


def _named(call: Call) -> str:
    return f"{call.type} {call.name}" + ("" if call.src == "?" else f" ({call.src})")
