"""What the demo says: a short page for a reader who sees agentloom for the first time, or the same facts as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from agentloom.adapters.local import SMOLLM2
from agentloom.cli.demo_acts import TARGETS, Edit, Incident, Outcome, Replays
from agentloom.cli.demo_forge import Checked
from agentloom.cli.demo_story import EDIT, REQUEST
from agentloom.cli.render import Screen, Span

if TYPE_CHECKING:
    from agentloom.format.checking import Verdict
    from agentloom.replay.diff import Diff

__all__ = ["Page", "Started", "odds_text"]

_MARGIN = "   "


@dataclass(frozen=True, slots=True)
class Started:
    """What answers the agent: a model server, or (``port`` is None) the seeded sampler. Loading takes ``seconds``."""

    name: str
    port: int | None
    pid: int | None
    seconds: float
    seed: int | None

    @property
    def real(self) -> bool:
        """Whether a model answers."""
        return self.port is not None


class Page:
    """Writes act by act. ``started`` decides whether the sampler has to be named on every line where it matters."""

    def __init__(self, screen: Screen, started: Started, folder: str) -> None:
        self._screen = screen
        self._started = started
        self._folder = folder
        self._by = "" if started.real else "  (seeded sampler, no model)"
        self.facts: dict[str, Any] = {"model": asdict(started) | {"real": started.real}}

    # -- small helpers

    def _line(self, *spans: Span) -> None:
        if not self._screen.json:
            self._screen.line(*([_MARGIN, *spans] if spans else []))

    def _title(self, number: int, text: str) -> None:
        if not self._screen.json:
            self._screen.line()
            self._screen.line(("name", f"{number}  "), ("strong", text))

    def _block(self, lines: Sequence[Sequence[Span]]) -> None:
        for spans in lines:
            self._line(*spans)

    # -- the acts

    def opening(self, rows: dict[str, int]) -> None:
        """Who plays: the model and why it was chosen, the agent, the database."""
        started = self._started
        if not self._screen.json:
            self._screen.line(("strong", "agentloom demo"), "  an agent deletes the wrong accounts")
            self._screen.line()
        if started.real:
            self._line(
                ("dim", "model     "),
                f"{started.name}, {SMOLLM2.parameters} million parameters, on this machine (127.0.0.1:{started.port})",
            )
            self._line(
                ("dim", "          "),
                "small, and chosen because it sometimes fails: a larger one fails too rarely to show in a minute",
            )
        else:
            self._line(
                ("dim", "model     "),
                ("warn", f"none: a seeded sampler (seed {started.seed}) draws the answers"),
            )
        self._line(("dim", "agent     "), f"{self._folder}/agent.py  ", ("name", f'"{REQUEST}"'))
        counts = ", ".join(f"{target} {rows[target]:,}" for target in TARGETS)
        self._line(("dim", "database  "), f"{self._folder}/accounts.db  {counts} accounts")
        self.facts |= {"folder": self._folder, "request": REQUEST, "rows": rows}

    def incident(self, found: Incident) -> None:
        """The runs until one hit production."""
        self._title(1, "It goes wrong")
        self.facts["incident"] = [asdict(run) for run in found.runs]
        counts = Counter(run.target or "failed" for run in found.runs)
        said = ", ".join(f"{counts[name]} {name}" for name in (*TARGETS, "failed") if counts[name])
        self._line(f"{len(found.runs)} runs at temperature 0.7: {said}{self._by}")
        malformed = sum(run.malformed for run in found.runs)
        if malformed:
            self._line(("dim", f"{malformed} malformed answer{_s(malformed)}, asked for again"))
        if found.bad is None:
            return
        self._line(
            f"run {found.runs.index(found.bad) + 1} picked ",
            ("bad", "production"),
            f": {found.bad.deleted:,} accounts gone. Recorded as ",
            ("name", found.bad.run),
        )

    def rerun(self, runs: list[Outcome], bad: Outcome) -> None:
        """New runs of the same request, and how likely production was in the recorded one."""
        self._title(2, "Running it again does not bring it back")
        hits = sum(run.target == "production" for run in runs)
        same = sum(bool(set(run.answers) & set(bad.answers)) for run in runs)
        self.facts["reruns"] = {"runs": [asdict(run) for run in runs], "production": hits, "that_run": same}
        self._line(
            f"Reran {len(runs)} times: production in {hits} of them, none of them is ",
            ("strong", "that"),
            f" run{self._by}",
        )
        if bad.odds is not None:
            self._line(f"its own odds, recorded: {odds_text(bad.odds)}{self._by}")

    def replays(self, done: Replays, name: str, port: int | None, open_: bool) -> None:
        """The replays of the bad run with the server stopped."""
        self._title(3, "The replay does, every time, and touches nothing")
        untouched = done.rows[0] == done.rows[1] and done.digest[0] == done.digest[1]
        self.facts["replay"] = asdict(done) | {
            "identical": done.identical, "port_open": open_, "database_untouched": untouched,
        }  # fmt: skip
        if port is not None:
            state = ("bad", "STILL OPEN") if open_ else ("good", "closed")
            self._line("model server stopped, port ", str(port), " ", state)
        median = statistics.median(done.seconds)
        times, all_ = len(done.verdicts), done.identical == len(done.verdicts)
        self._line(
            f"agentloom replay {name}: {times} times, ",
            ("good" if all_ else "bad", f"{done.identical} IDENTICAL"),
            f"  {done.calls}/{done.calls} calls, output  {median * 1000:.0f} ms  $0",
        )
        by = {"os": "by the operating system", "python": "by Python"}.get(done.network, f"({done.network})")
        self._line(
            "and once in a new process: ",
            ("good" if done.apart == "identical" else "bad", done.apart.upper()),
            f"  network refused {by}",
        )
        self._line(("dim", "each: "), f'"{done.output}"')
        self._line(
            f"database before and after: production {done.rows[0]['production']:,} and {done.rows[1]['production']:,}, "
            f"sha256 {done.digest[0][:8]} and {done.digest[1][:8]} ",
            ("good", "untouched") if untouched else ("bad", "CHANGED"),
        )

    def edit(self, made: Edit, bad: Outcome) -> None:
        """The edited prompt: the report, then new runs."""
        self._title(4, "Edit the prompt: the replay names the first call that changes, and why")
        self.facts["edit"] = {
            "old": EDIT[0],
            "new": EDIT[1], "report": made.report.to_json(), "runs": [asdict(run) for run in made.runs],
        }  # fmt: skip
        self._block(made.report.render(min(self._screen.width - len(_MARGIN), 100)))
        if made.runs:
            hits = sum(run.target == "production" for run in made.runs)
            after = _mean([run.odds["production"] for run in made.runs if run.odds])
            before = bad.odds["production"] if bad.odds else None
            change = (
                f"; its probability {before:.2f} -> {after:.2f}"
                if before is not None and after is not None
                else ""
            )
            self._line(f"{len(made.runs)} new runs with the edit: production in {hits} of them{change}")
        else:
            self._line(("warn", "no new runs with the edit: the seeded sampler reads no prompt"))

    def diff(self, compared: Diff, good: str, bad: str) -> None:
        """A good run against the bad one, by their short names."""
        self._title(5, f"A good run ({good}) against the bad one ({bad})")
        self.facts["diff"] = compared.to_json()
        self._block(compared.render(min(self._screen.width - len(_MARGIN), 100)))
        if not self._started.real:
            self._line(("warn", "both runs: seeded sampler, no model"))

    def verify(self, checked: Checked, head: str) -> None:
        """What verify says of the trace, of one changed byte, of a rewritten chain."""
        self._title(6, "Alter the record, and verify notices")
        self.facts["verify"] = {
            "head": head,
            "original": asdict(checked.original),
            "byte": asdict(checked.byte)
            | {"old": checked.old, "new": checked.new, "file": str(checked.files[0])},
            "rewritten": asdict(checked.rewritten)
            | {"output": checked.output, "file": str(checked.files[1])},
        }
        self._line(("dim", "head kept elsewhere  "), head)
        self._verdict("as recorded", checked.original, f"{checked.original.entries} entries")
        self._verdict("one byte changed", checked.byte, f"{checked.old} -> {checked.new}")
        self._verdict("rewritten whole", checked.rewritten, f'"{checked.output}", every digest made anew')

    def _verdict(self, what: str, verdict: Verdict, note: str) -> None:
        if not verdict.consistent:
            said: Span = ("bad", f"not consistent: line {verdict.line}, {verdict.code}")
        elif not verdict.unaltered:
            said = ("bad", "consistent, but not the saved head")
        else:
            said = ("good", "unaltered, complete" if verdict.complete else "unaltered, not complete")
        self._line(what.ljust(19), said, ("dim", f"  {note}"))

    def closing(self, seconds: float, next_: Sequence[tuple[str, str]]) -> None:
        """How long it took and what to try now."""
        self.facts |= {"seconds": seconds, "next": [{"command": c, "for": why} for c, why in next_]}
        if self._screen.json:
            self._screen.data(self.facts)
            return
        self._screen.line()
        self._screen.line(
            (
                "dim",
                f"{seconds:.0f} s, every figure from this run{self._by}. Traces and agent stay in {self._folder}/",
            )
        )
        width = max(len(command) for command, _ in next_)
        for number, (command, why) in enumerate(next_):
            label = "next  " if number == 0 else "      "
            self._screen.line(("strong", label), ("name", command.ljust(width)), ("dim", f"   {why}"))


def odds_text(odds: dict[str, float]) -> str:
    """``staging 0.91, production 0.09`` with where the numbers come from."""
    said = ", ".join(f"{name} {value:.2f}" for name, value in odds.items())
    return f"{said} (from its log probabilities, at temperature 0.7)"


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _s(count: int) -> str:
    return "" if count == 1 else "s"
