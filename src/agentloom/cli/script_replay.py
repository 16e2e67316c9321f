"""Replaying in the child process: a script or an agent runs again, every host call answered from the trace."""

from __future__ import annotations

import _thread
import os
import time
from typing import TYPE_CHECKING, Any, cast

from agentloom.cli.netns import leave_network
from agentloom.cli.script_effects import Refusing
from agentloom.cli.script_exec import load
from agentloom.cli.script_facts import script_code
from agentloom.cli.script_record import shown
from agentloom.cli.script_run import Program, ScriptRun
from agentloom.errors import ControlFlow
from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording, facts_of
from agentloom.replay.replayer import conclude, session_for
from agentloom.replay.source import ReplaySource
from agentloom.runtime.identity import environment

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results

__all__ = ["replay"]

_GRACE = 3.0
"""Seconds that a program gets to end after a verdict; one that catches everything and goes on is stopped then."""
_TICK = 0.1


def replay(job: dict[str, Any], results: Results) -> int:
    """Replay the trace on the job's descriptor; sends ``{"done": {"report", "lines", "exit"}}``."""
    with os.fdopen(job["trace_fd"], "rb") as file:
        data = file.read()
    alone = leave_network()
    if job.get("object"):
        from agentloom.cli.script_agent_replay import replay_agent

        return replay_agent(job, results, data, alone=alone)
    recording = Recording.from_journal(Journal.parse(data))
    recording.replayable()
    return _Replay(job, results, recording, alone=alone).run()


class _Replay:
    """The replay of one script."""

    def __init__(self, job: dict[str, Any], results: Results, recording: Recording, *, alone: bool) -> None:
        self.job = job
        self.results = results
        self.recording = recording
        self.alone = alone
        self.path: str = job["path"]
        self.source = ReplaySource(recording)
        self.session = session_for(recording, self.source, os.path.dirname(self.path))
        self.refusing = Refusing(self.session, self.source)
        entry = cast("dict[str, Any]", cast("dict[str, Any]", recording.payload("code"))["entry"])
        given = cast("dict[str, Any]", recording.payload("input"))
        effects = {call.name: call.effect for call in recording.calls if call.type == "tool" and call.effect}
        streams = cast("dict[str, Any]", entry["streams"])
        self.program = Program(self.path, load(self.path), given["args"], streams, cast(Any, effects))
        # Now, before the program can change its own files or the process.
        self.code_now = facts_of(
            cast(Any, script_code(self.path, streams, os.environ)), cast(Any, environment())
        )
        self.began = time.monotonic()

    def run(self) -> int:
        """Run the program and report."""
        watched = _thread.start_new_thread(self._watch, ())
        del watched
        run = ScriptRun(
            self.session,
            self.program,
            self.refusing,
            shown(to_stderr=bool(self.job.get("json"))),
            outer=None,
            strict=True,
        )
        try:
            ended = run.execute()
            self.session.engine.finish(ended.status, run.output(ended))
        except ControlFlow:
            if self.source.finding is None and self.source.unusable is None:
                raise
        finally:
            self.source.close()
        return self._send()

    def _watch(self) -> None:
        """Nothing that a program catches can keep its verdict back: after a while the process ends with it."""
        while self.session.engine.failure is None:
            time.sleep(_TICK)
        time.sleep(_GRACE)
        code = self._send()
        os._exit(code)

    def _send(self) -> int:
        if self.source.unusable is not None:
            raise self.source.unusable
        report = conclude(
            self.source,
            self.code_now,
            seconds=time.monotonic() - self.began,
            compared=("stdout", "stderr", f"exit code {self._exit_code()}"),
        )
        code = report.exit_code(strict_noted=bool(self.job.get("strict_noted")))
        lines = report.render(int(self.job.get("width") or 100))
        facts = enforced(self.refusing, alone=self.alone)
        self.results.send(done={"report": report.to_json() | facts, "lines": lines, "exit": code})
        return code

    def _exit_code(self) -> object:
        output = self.recording.output()
        return output.get("exit") if isinstance(output, dict) else "?"


def enforced(refusing: Refusing, *, alone: bool) -> dict[str, Any]:
    """What kept the world safe (``os``: a network namespace; ``python``: the watch alone), and what was read of it."""
    return {"network": "os" if alone else "python", "reads": [str(effect) for effect in refusing.reads]}
