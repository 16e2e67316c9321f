"""Replaying in the child process: a script or an agent runs again, every host call answered from the trace."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any, cast

from agentloom.cli.netns import leave_network
from agentloom.errors import ControlFlow, TraceError, UnrecordedEffect
from agentloom.format.journal import Journal
from agentloom.format.values import decode
from agentloom.replay.recording import Recording, facts_of
from agentloom.replay.replayer import as_kept, session_for, watch_over
from agentloom.replay.source import ReplaySource
from agentloom.runtime.homes import from_home
from agentloom.runtime.identity import environment
from agentloom.runtime.registry import TYPES

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results
    from agentloom.cli.script_run import Program

__all__ = ["replay"]


def replay(job: dict[str, Any], results: Results) -> int:
    """Replay the trace on the job's descriptor; sends ``{"done": {"report", "lines", "exit"}}``."""
    with os.fdopen(job["trace_fd"], "rb") as file:
        data = file.read()
    alone = leave_network()
    recording = _recording(data, str(job["name"]))
    if job.get("object"):
        from agentloom.cli.script_agent_replay import replay_agent

        return replay_agent(job, results, recording, alone=alone)
    return _replay_script(job, results, recording, alone=alone)


def _recording(data: bytes, name: str) -> Recording:
    """The whole trace, checked. Raises ``FormatError`` or ``IntegrityError`` that names it.

    What it is made of lives as long as this process: the garbage collector need not look at it again and again.
    """
    gc.disable()
    try:
        recording = Recording.from_journal(Journal.parse(data))
    except TraceError as error:
        from agentloom.cli.runs import named

        raise named(error, name) from None
    finally:
        gc.enable()
    gc.freeze()
    recording.replayable()
    return recording


def _replay_script(job: dict[str, Any], results: Results, recording: Recording, *, alone: bool) -> int:
    # Here and below: what only scripts need, an agent function is replayed sooner without.
    from agentloom.cli.script_exec import Ended
    from agentloom.cli.script_facts import script_code, show_placeholders
    from agentloom.cli.script_record import shown
    from agentloom.cli.script_run import ScriptRun
    from agentloom.cli.script_verdict import Reporter
    from agentloom.replay.refusal import Refusing

    path: str = job["path"]
    show_placeholders(recording.secrets().values(), recording.variables())
    source = ReplaySource(recording)
    session = session_for(recording, source, os.path.dirname(path))
    refusing = Refusing(source)
    watch_over(session, refusing)
    program = _program(path, recording)
    reporter = Reporter(job, results, source, refusing, lambda: _compared(recording), alone=alone)
    # Now, before the program can change its own files or the process.
    now = facts_of(cast(Any, script_code(path, program.streams, os.environ)), cast(Any, environment()))
    reporter.code_now = as_kept(recording, now)
    show = shown(to_stderr=bool(job.get("json")))
    coming = _printed_beside(recording)
    run = ScriptRun(session, program, refusing, show, outer=None, strict=True, coming=coming)

    def settled() -> bool:
        return source.complete or source.finding is not None or source.unusable is not None

    def finish(ended: Ended) -> None:
        try:
            session.engine.finish(ended.status, run.output(ended))
        except (
            ControlFlow,
            UnrecordedEffect,
        ):  # a verdict; or the guard stopped the script, as when recorded
            if not settled():
                raise

    run.at_exit(finish)
    with reporter.watching():
        try:
            ended = run.execute()
        except ControlFlow:
            if isinstance(session.engine.failure, UnrecordedEffect):
                finish(Ended(1, session.engine.failure))
            elif not settled():
                raise
        else:
            finish(ended)
        return reporter.send()


def _printed_beside(recording: Recording) -> list[tuple[str, Any, str]]:
    """What tools printed while other code of the program went on, each with its place."""
    from agentloom.cli.script_perform import printed_in

    found: list[tuple[str, Any, str]] = []
    for call in recording.calls:
        if call.type != "tool" or call.value is None or not recording.journal.has(call.value):
            continue
        printed = [item for item in printed_in(recording.outcome(call)) if len(item) == 3]
        found += [(stream, tuple(place), text) for stream, text, place in printed]
    return found


def _program(path: str, recording: Recording) -> Program:
    from agentloom.cli.script_exec import load
    from agentloom.cli.script_run import Program

    entry = cast("dict[str, Any]", cast("dict[str, Any]", recording.payload("code"))["entry"])
    given = cast("dict[str, Any]", decode(recording.payload("input"), TYPES))
    effects = {call.name: call.effect for call in recording.calls if call.type == "tool" and call.effect}
    streams = cast("dict[str, Any]", entry["streams"])
    called = entry.get("called")
    called = from_home(called) if isinstance(called, str) else None
    return Program(path, load(path), list(given["args"]), streams, cast(Any, effects), called)


def _compared(recording: Recording) -> tuple[str, ...]:
    output = recording.output()
    code = output.get("exit") if isinstance(output, dict) else "?"
    return "stdout", "stderr", f"exit code {code}"
