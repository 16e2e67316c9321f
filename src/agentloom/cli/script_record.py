"""Recording in the child process: a script as one run, or an agent function."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from agentloom.cli.script_child import leave
from agentloom.cli.script_exec import Ended, load
from agentloom.cli.script_facts import script_agent, script_code
from agentloom.cli.script_loops import close_outer
from agentloom.cli.script_output import stream_facts
from agentloom.cli.script_run import Program, ScriptRun
from agentloom.cli.targets import agent_names
from agentloom.errors import ControlFlow
from agentloom.runtime.guard_effects import Noting
from agentloom.runtime.recorder import RunOptions, begin
from agentloom.store import open_store

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results
    from agentloom.runtime.recorder import Recording

__all__ = ["record"]

_OF_SCRIPTS = "virtual"
"""The guard of scripts, unless another is asked for: it refuses nothing of a stranger's program when recording."""


def record(job: dict[str, Any], results: Results) -> int:
    """Record what ``job`` names; the exit code is the program's own."""
    if job.get("object"):
        from agentloom.cli.script_agent import record_agent

        return record_agent(job, results)
    path: str = job["path"]
    code = load(path)
    program = Program(path, code, list(job["args"]), stream_facts(), job.get("tools") or {}, job.get("shown"))
    outer = asyncio.new_event_loop()
    guard = job.get("guard") or _OF_SCRIPTS
    options = RunOptions(
        job.get("seed"),
        job.get("tags") or {},
        job.get("conversation"),
        guard,
        tools=job.get("tools") or {},
        draws="shared",
    )
    recording = begin(
        script_agent(path),
        tuple(program.argv),
        {},
        store=open_store(job.get("store")),
        options=options,
        outer=outer,
        code=script_code(path, program.streams, os.environ, program.called),
    )
    results.send(run=recording.run_id)
    try:
        return _run(recording, program, outer, results, quiet=bool(job.get("json")))
    finally:
        recording.close()


def _run(
    recording: Recording, program: Program, outer: asyncio.AbstractEventLoop, results: Results, *, quiet: bool
) -> int:
    session = recording.session
    noting = session.effects
    if not isinstance(noting, Noting):  # the guard is off: what passes is told all the same
        noting = session.effects = session.engine.unrecorded = Noting()
    run = ScriptRun(session, program, noting, shown(to_stderr=quiet), outer=outer, strict=False)

    def finish(ended: Ended) -> None:
        session.engine.finish(ended.status, run.output(ended))
        results.send(done=summary(run, noting, ended))

    run.at_exit(finish)
    try:
        ended = run.execute()
        if not results.ours:
            leave(ended.exit)  # a process that the program forked, and that came to the program's end
        finish(ended)
    except ControlFlow:
        session.engine.judge()  # a store that failed: the run stopped before its next effect
        raise
    finally:
        session.source.close()
        close_outer(outer)
    return ended.exit


def summary(run: ScriptRun, noting: Noting, ended: Ended) -> dict[str, Any]:
    """What the parent tells the user."""
    return {
        "status": ended.status,
        "exit": ended.exit,
        # Python ends so itself then, and passes for a process that Ctrl-C has ended.
        "signal": signal.SIGINT if ended.interrupted else None,
        "tools": [
            {"name": tool.name, "place": tool.place, "effect": tool.effect} for tool in run.finder.found
        ],
        "missing": [{"name": tool.name, "why": tool.why} for tool in run.finder.missing],
        "unrecorded": noting.facts(),
        "more": noting.more,
        "guard": run.session.guard.policy,
        "agents": [] if (main := sys.modules.get("__main__")) is None else agent_names(main),
    }


def shown(*, to_stderr: bool) -> dict[str, Callable[[bytes], None]]:
    """Where a program's streams go: the process's own, or (``--json``) both to stderr, so that stdout is one
    document. A reader that went away is not the program's business."""
    out = cast(Any, sys.stderr if to_stderr else sys.stdout)
    return {"stdout": _writer(out), "stderr": _writer(cast(Any, sys.stderr))}


def _writer(stream: Any) -> Callable[[bytes], None]:
    target = stream.buffer

    def write(data: bytes) -> None:
        # At once: the program may have flushed it, and its process may not come to a good end.
        try:
            target.write(data)
            target.flush()
        except BrokenPipeError:
            # What is left in the buffer must go somewhere, or the interpreter complains about it at its end.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, target.fileno())
            os.close(nowhere)

    return write
