"""Replaying an ``@agent`` function or a workflow in the child process."""

from __future__ import annotations

import os
import signal
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters import sdks
from agentloom.api.recording_target import found_again, found_function, of_call
from agentloom.api.trace import agent_function
from agentloom.cli.script_facts import show_placeholders
from agentloom.cli.script_run import ignored
from agentloom.cli.script_verdict import Reporter
from agentloom.cli.targets import agent_object, load_module
from agentloom.errors import ControlFlow, TargetError
from agentloom.format.values import decode
from agentloom.replay.refusal import Refusing
from agentloom.replay.replayer import current_facts, run_agent, session_for, watch_over
from agentloom.replay.source import ReplaySource
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.places import Places
from agentloom.runtime.refuse import Watch
from agentloom.runtime.registry import TYPES

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results
    from agentloom.replay.recording import Recording

__all__ = ["named_agent", "replay_agent"]


def replay_agent(job: dict[str, Any], results: Results, recording: Recording, *, alone: bool) -> int:
    """Import the agent and replay the trace with it. Effects outside host calls are refused in the whole process,
    from the import on: in threads, in exit handlers, in libraries."""
    sdks.watch()
    if job.get("json"):
        os.dup2(2, 1)  # stdout is one document; what the program prints goes beside it
    show_placeholders(recording.secrets().values(), recording.variables())
    source = ReplaySource(recording)
    source.until = job.get("until")
    refusing = Refusing(source)
    reporter = Reporter(job, results, source, refusing, lambda: ("output",), alone=alone)
    path: str | None = job.get("path")
    # On replay Ctrl-C is for the parent, which ends this process: nothing can be lost with it.
    signal.signal(signal.SIGINT, ignored)
    with reporter.watching():
        root = os.path.dirname(path) if path else os.getcwd()
        watch = Watch(refusing, Places(root), everything=True)
        watch.arm()
        try:
            _run(job, source, refusing, reporter, watch)
        except ControlFlow:
            if source.finding is None and source.unusable is None:
                raise
        return reporter.send()


def named_agent(module: ModuleType, job: dict[str, Any]) -> AgentFunction:
    """What the job names in ``module``. Raises ``TargetError`` that lists what it has instead."""
    if job.get("recorded"):
        return _recorded_call(module, job)
    return agent_function(agent_object(module, job["object"]))


def _recorded_call(module: ModuleType, job: dict[str, Any]) -> AgentFunction:
    """The function that was recorded, or the one that was named to make the call again."""
    entry: dict[str, Any] = job["recorded"]
    if entry.get("kind") == "function":
        found = found_again({**entry, "qualname": job["object"]}, module)
        if found is not None:
            return found
    elif (function := found_function(module, job["object"], 0)) is not None:
        return of_call(function, job["object"], entry)
    raise TargetError(
        f"{job['object']} is not in {getattr(module, '__file__', None) or module.__name__}",
        hint="--target FILE:NAME names where it is now; --at recorded runs the sources kept in the trace",
    )


def _run(
    job: dict[str, Any], source: ReplaySource, refusing: Refusing, reporter: Reporter, watch: Watch
) -> None:
    recorded: str = job["module"] or ""
    module = load_module(job.get("path"), recorded or None, main=recorded == "__main__")
    agent = named_agent(module, job)
    with watch.aside():  # it asks git for the commit
        reporter.code_now = current_facts(agent, source.recording)
    session = session_for(source.recording, source, agent.root)
    watch_over(session, refusing)
    given = cast("dict[str, Any]", decode(source.recording.payload("input"), TYPES))
    run_agent(session, source, agent, given)
