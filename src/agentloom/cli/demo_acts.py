"""What the demo does, act by act. Each act returns what it measured; ``demo_show`` says it.

Every figure comes from this run: rows from the database, verdicts from replays, probabilities from the traces.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agentloom.api.trace import Trace
from agentloom.cli.demo_story import REQUEST, Story
from agentloom.errors import LoomError
from agentloom.replay.probability import choice_odds
from agentloom.replay.recording import Recording

if TYPE_CHECKING:
    from agentloom.replay.report import Report
    from agentloom.store import Store

__all__ = [
    "TARGETS",
    "Edit",
    "Incident",
    "Outcome",
    "Replays",
    "incident",
    "look",
    "port_open",
    "replays",
    "rerun",
    "try_edit",
]

TARGETS = ("staging", "production")
_AT_LEAST_GOOD = 3
"""Runs to record even when the first one already hits production: a good run is needed to compare with."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One recorded run. ``target`` is None when it failed; ``odds`` None when the trace does not tell them."""

    run: str
    target: str | None
    deleted: int
    malformed: int
    odds: dict[str, float] | None
    seconds: float
    answers: tuple[str, ...]


def look(trace: Trace, seconds: float) -> Outcome:
    """Read one run from its trace: what was chosen, what was deleted, how likely each target was."""
    recording = Recording.from_journal(trace.journal)
    target, deleted, likely = None, 0, None
    answers: list[str] = []
    for call in recording.calls:
        outcome = cast("dict[str, Any] | None", recording.outcome(call))
        if call.type == "model" and outcome is not None:
            answers.append(str(outcome.get("id")))
            likely = choice_odds(outcome, recording.request(call), "target", TARGETS)
            if likely is not None and not all(likely.values()):
                likely = None  # a target below the recorded alternatives: unlikely, but not impossible
        if (
            call.type == "tool"
            and call.name == "delete_accounts"
            and call.status == "ok"
            and outcome is not None
        ):
            target, deleted = str(outcome["target"]), int(outcome["deleted"])
    return Outcome(trace.run_id, target, deleted, max(0, len(answers) - 1), likely, seconds, tuple(answers))


def rerun(story: Story, agent: Any, store: Store, act: str) -> Outcome:
    """Record one run on a fresh database. A run whose three answers were all malformed fails, and counts as such."""
    story.reset()
    began = time.monotonic()
    try:
        trace = agent.run(REQUEST, store=store, tags={"act": act})
    except RuntimeError:
        trace = Trace.open("last", store)
    return look(trace, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Incident:
    """The runs recorded until one hit production. ``bad`` is None when the time was up before that."""

    runs: list[Outcome]
    good: Outcome | None
    bad: Outcome | None


def incident(
    story: Story, agent: Any, store: Store, *, seconds: float, progress: Callable[[list[Outcome]], None]
) -> Incident:
    """Record runs until one deletes in production and one in staging, for ``seconds`` at most."""
    runs: list[Outcome] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        runs.append(rerun(story, agent, store, "incident"))
        progress(runs)
        bad = next((run for run in runs if run.target == "production"), None)
        # The same number of answers makes a good run that differs in the choice alone.
        good = next(
            (r for r in runs if r.target == "staging" and (not bad or r.malformed == bad.malformed)), None
        )
        if bad and good and len(runs) >= _AT_LEAST_GOOD:
            return Incident(runs, good, bad)
    return Incident(runs, next((run for run in runs if run.target == "staging"), None), None)


@dataclass(frozen=True, slots=True)
class Replays:
    """``verdicts`` of the replays in this process; ``apart``, ``network`` of one in a process of its own.

    ``rows`` and ``digest``: the database before and after, accounts by target and SHA-256 of the file.
    """

    verdicts: list[str]
    apart: str
    network: str
    calls: int
    seconds: list[float]
    output: str
    rows: tuple[dict[str, int], dict[str, int]]
    digest: tuple[str, str]

    @property
    def identical(self) -> int:
        """How many were identical."""
        return self.verdicts.count("identical")


def replays(story: Story, agent: Any, accounts: Any, trace: Trace, times: int) -> Replays:
    """Replay ``trace`` ``times`` times, and once with the command in a new process, on a fresh database."""
    story.reset()
    before = accounts.count(), story.digest()
    reports: list[Report] = []
    seconds: list[float] = []
    for _ in range(times):
        began = time.monotonic()
        reports.append(trace.replay(check=False, agent=agent))
        seconds.append(time.monotonic() - began)
    apart = _replay_apart(story, trace)
    after = accounts.count(), story.digest()
    return Replays(
        [report.verdict for report in reports],
        str(apart.get("verdict")),
        str(apart.get("network")),
        reports[0].counts.total,
        seconds,
        str(trace.output),
        (before[0], after[0]),
        (before[1], after[1]),
    )


def _replay_apart(story: Story, trace: Trace) -> dict[str, Any]:
    """What ``agentloom replay`` says in a new process, in the story's folder. Raises LoomError when it says nothing."""
    file = story.folder / "incident.loom"
    trace.save(file)
    done = subprocess.run(
        [sys.executable, "-m", "agentloom", "--json", "replay", file.name],
        cwd=story.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return dict(json.loads(done.stdout))
    except ValueError as error:
        raise LoomError(
            f"agentloom replay {file} failed with exit code {done.returncode}",
            hint=(done.stderr.strip().splitlines() or ["run it by itself to see why"])[-1],
        ) from error


@dataclass(frozen=True, slots=True)
class Edit:
    """The recorded run against the edited agent, and new runs of the edited agent (none with the sampler)."""

    report: Report
    runs: list[Outcome]


def try_edit(
    story: Story, trace: Trace, store: Store, times: int, progress: Callable[[list[Outcome]], None]
) -> Edit:
    """Replay ``trace`` with the edited copy's code, then record ``times`` new runs of the edited copy."""
    runs: list[Outcome] = []
    with story.imported() as (agent, _):
        report = trace.replay(check=False, agent=agent.cleanup)
        for _ in range(times):
            runs.append(rerun(story, agent.cleanup, store, "edited"))
            progress(runs)
    return Edit(report, runs)


def port_open(port: int) -> bool:
    """Whether anything listens on ``port`` of this machine."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
