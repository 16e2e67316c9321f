"""Resuming an ``@agent`` function or a workflow in the child process: replay, then live, into the same trace."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from agentloom.adapters import sdks
from agentloom.api.resuming import resume
from agentloom.api.rollback import plan_of, rollback
from agentloom.api.trace import Trace
from agentloom.cli.script_agent import ended_by, not_recorded, outcome_of, show_output, terminal_of
from agentloom.cli.script_agent_replay import named_agent
from agentloom.cli.script_endings import ENDING, as_pressed
from agentloom.cli.script_run import ignored, one_press
from agentloom.cli.targets import load_module
from agentloom.errors import DivergenceError, Suspended
from agentloom.runtime.guard_effects import Noting
from agentloom.runtime.places import Places
from agentloom.runtime.refuse import Watch
from agentloom.runtime.undoing import undo_of
from agentloom.store import Store, open_store

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results

__all__ = ["resume_agent", "steadily", "take_back"]

_ENDING = (signal.SIGINT, *ENDING)


def resume_agent(job: dict[str, Any], results: Results) -> int:
    """Go on with the run that the job names; prints the output of one that ended, and returns 0; 1 when it raised, 75
    where it is suspended again, 3 where the code no longer fits."""
    sdks.watch()
    if job.get("json"):
        os.dup2(2, 1)  # stdout is one document; what the program prints goes beside it
    store, run = open_store(job.get("store")), str(job["run"])
    terminal = terminal_of(job, store, lambda: run)
    path: str | None = job.get("path")
    noting = Noting()
    logging.getLogger("agentloom.guard").disabled = True  # what is not recorded is in the summary
    with Watch(noting, Places(os.path.dirname(path) if path else os.getcwd()), everything=False).armed():
        recorded: str = job["module"] or ""
        module = load_module(path, recorded or None, main=recorded == "__main__")
        agent = named_agent(module, job)
        ask = None if terminal is None else terminal.ask
        if job.get("steady"):
            with steadily():
                done = _go_on(job, store, agent, ask)
        else:
            with one_press(_nobody if terminal is None else terminal.interrupted), as_pressed() as signalled:
                done = _go_on(job, store, agent, ask)
                done = ended_by(signalled(), done)
    if done["status"] != "diverged":  # then the run is as it was
        done |= not_recorded(Trace(store.read(run)), noting.facts(), noting.more)
    results.send(done=done)
    return int(done["exit"])


def take_back(job: dict[str, Any], results: Results) -> int:
    """Take back the run that the job names, or say what would be; 0 when it is done, 1 where an undo failed, 75 where
    one is in doubt."""
    sdks.watch()
    if job.get("json"):
        os.dup2(2, 1)  # stdout is one document; what the program prints goes beside it
    store, run = open_store(job.get("store")), str(job["run"])
    recorded: str = job["module"] or ""
    load_module(job.get("path"), recorded or None, main=recorded == "__main__")
    if job["rollback"] == "plan":
        done = _plan(Trace(store.read(run)))
    else:
        with one_press(_nobody), as_pressed() as signalled:
            done = _taken_back(store, run)
            done = ended_by(signalled(), done)
    results.send(done=done)
    return int(done["exit"])


def _plan(trace: Trace) -> dict[str, Any]:
    can, cannot = plan_of(trace)
    undos = [(one, undo_of(one.tool)) for one in can]
    return {
        "status": "planned",
        "exit": 0,
        "can": [
            {
                "number": one.number, "tool": one.tool, "undo": undo.function.__name__,
                "given": ", ".join(f"{name}={value!r}" for name, value in undo.given(one.args, one.result).items()),
            }
            for one, undo in undos if undo is not None
        ],
        "cannot": [{"number": call.number, "tool": call.name} for call in cannot],
    }  # fmt: skip


def _taken_back(store: Store, run: str) -> dict[str, Any]:
    try:
        trace, done = outcome_of(lambda: rollback(run, store=store))
    except Suspended as left:
        return {"status": "suspended", "exit": 75, "by": left.run}
    return done if trace is None else done | {"by": trace.run_id, "undone": trace.output}


def _go_on(job: dict[str, Any], store: Store, agent: Any, answerer: Any) -> dict[str, Any]:
    run, retry = str(job["run"]), bool(job.get("retry_failed"))
    try:
        trace, done = outcome_of(
            lambda: resume(run, agent, store=store, retry_failed=retry, answerer=answerer)
        )
    except Suspended as left:
        return {"status": "suspended", "exit": 75, "due": left.due}
    except DivergenceError as error:
        width = int(job.get("width") or 100)
        return {
            "status": "diverged", "exit": 3, "report": error.report.to_json(), "lines": error.report.render(width)
        }  # fmt: skip
    if trace is not None:
        show_output(trace)
    return done


def _nobody() -> bool:
    return False


@contextlib.contextmanager
def steadily() -> Generator[None]:
    """For the block, signals that ask a process to end do nothing: whoever started it waits until the run is over, or
    kills it, and then it is resumed again. Handled, not ignored: what the run starts is not to inherit it."""
    before: dict[int, Any] = {number: signal.signal(number, ignored) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, ignored if number == signal.SIGINT else handler)
