"""Two traces side by side: aligned call by call, where they part, and why.

Calls are aligned by path, kind and name, never by line number. Ids and times that every run mints anew are hidden and
counted. ``docs/report-json.md`` describes the JSON form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import orjson

from agentloom.format.journal import Journal
from agentloom.format.values import Tree
from agentloom.replay.align import align_keys
from agentloom.replay.answered import wire_answer
from agentloom.replay.cause import Cause, find_cause, parse_src
from agentloom.replay.code import code_changes
from agentloom.replay.fields import Comparison, Difference, compare, same_tree
from agentloom.replay.leaks import classify
from agentloom.replay.probability import choice_odds, first_token_odds
from agentloom.replay.recording import RecordedCall, Recording, Step
from agentloom.replay.report import CallRef, comparison_json
from agentloom.replay.summaries import recorded_ref, unprinted
from agentloom.replay.text import Line, plain
from agentloom.runtime.served import LISTING, compare_tools, tools_in

__all__ = ["Diff", "Odds", "Row", "Totals", "diff"]

Status = Literal["same", "changed", "only here", "only there", "moved"]
Part = Literal["none", "input", "request", "outcome", "only here", "only there", "moved", "output", "end"]
SCHEMA = "agentloom/diff/1"
# Fields of a model's answer that say nothing about what it answered.
_ANSWER_NOISE = frozenset(
    (
        "id",
        "request_id",
        "raw_usage",
        "usage",
        "logprobs",
        "system_fingerprint",
        "native_finish_reason",
        "blocks",
        "info",  # a server's own facts: when it was created, its timings, its service tier
    )
)
_ID_FIELDS = frozenset(
    """id call_id tool_call_id tool_use_id request_id run_id trace_id
    x-request-id request-id cf-ray etag""".split()
)
_TIME_FIELDS = frozenset(
    """created created_at timestamp started_at updated_at date last-modified openai-processing-ms
    retry-after retry-after-ms""".split()
)
_LIMITS = re.compile(r"headers\.(?:x-|anthropic-)?ratelimit-[a-z-]+\Z")


@dataclass(frozen=True, slots=True)
class Odds:
    """Probabilities of the choices in both runs, where the answers hold log probabilities."""

    here: dict[str, float] | None
    there: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class Row:
    """One aligned call or state. ``request`` and ``outcome`` hold the differences that are not noise; ``served`` says
    in words what other tools a server served."""

    status: Status
    here: CallRef | None
    there: CallRef | None
    request: Comparison | None = None
    outcome: Comparison | None = None
    statuses: tuple[str | None, str | None] = (None, None)
    odds: Odds | None = None
    served: tuple[str, ...] = ()

    @property
    def ref(self) -> CallRef:
        """The call of the run that has it, ours first."""
        return cast(CallRef, self.here or self.there)

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON."""
        odds = self.odds
        return {
            "status": self.status,
            "here": self.here.to_json() if self.here else None,
            "there": self.there.to_json() if self.there else None,
            "request": comparison_json(self.request),
            "outcome": comparison_json(self.outcome),
            "outcome_status": list(self.statuses),
            "odds": {"here": cast(Tree, odds.here), "there": cast(Tree, odds.there)} if odds else None,
            "served": list(self.served),
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over one run: calls, model calls, tokens by class, seconds from start to end (None when it has no end)."""

    calls: int
    models: int
    tokens: dict[str, int]
    seconds: float | None

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON."""
        return {
            "calls": self.calls,
            "model_calls": self.models,
            "tokens": dict(self.tokens),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Diff:
    """Where two runs part, and why. ``rows`` hold every aligned call in order; ``part`` is the first that differs."""

    runs: tuple[str, str]
    names: tuple[str, str]
    part: Part
    first: Row | None
    why: str
    rows: tuple[Row, ...]
    input: Comparison
    output: Comparison
    statuses: tuple[str, str]
    totals: tuple[Totals, Totals]
    hidden: dict[str, int] = field(default_factory=dict[str, int])
    cause: Cause | None = None

    @property
    def same(self) -> bool:
        """Whether nothing but noise differs."""
        return self.part == "none"

    def counts(self) -> dict[str, int]:
        """How many rows have each status."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in ("same", "changed", "only here", "only there", "moved")}

    def to_json(self) -> dict[str, Tree]:
        """The facts as plain JSON; rows that are the same are only counted."""
        return {
            "schema": SCHEMA,
            "runs": list(self.runs),
            "names": list(self.names),
            "same": self.same,
            "part": self.part,
            "first": self.first.to_json() if self.first else None,
            "why": self.why,
            "counts": dict(self.counts()),
            "rows": [row.to_json() for row in self.rows if row.status != "same"],
            "input": comparison_json(self.input),
            "output": comparison_json(self.output),
            "status": list(self.statuses),
            "totals": [total.to_json() for total in self.totals],
            "hidden": dict(self.hidden),
            "cause": self.cause.to_json() if self.cause else None,
        }

    def render(self, width: int = 100) -> list[Line]:
        """Styled lines of at most about ``width`` characters, 1,200 characters in all."""
        from agentloom.replay.diff_text import render

        return render(self, width)

    def __str__(self) -> str:
        return plain(self.render())


def diff(here: Journal, there: Journal, *, names: tuple[str, str] | None = None) -> Diff:
    """Compare two traces. ``names`` are what the text calls the runs; default: the ends of their ids."""
    return _Comparer(Recording.from_journal(here), Recording.from_journal(there), names).result()


@dataclass(slots=True)
class _Comparer:
    here: Recording
    there: Recording
    names: tuple[str, str] | None
    hidden: Counter[str] = field(default_factory=Counter[str])

    def result(self) -> Diff:
        rows = self._rows()
        given = self._quiet(compare(self.here.payload("input"), self.there.payload("input"), root="input"))
        output = self._quiet(
            compare(_opened(self.here.output()), _opened(self.there.output()), ordered=True, root="output")
        )
        part, first = self._part(rows, given, output)
        cause = self._cause(part, first, given, output)
        runs = (self.here.run, self.there.run)
        return Diff(
            runs, self.names or (runs[0][-4:], runs[1][-4:]), part, first, _why(part, first, cause), tuple(rows),
            given, output, (str(self.here.status), str(self.there.status)),
            (_totals(self.here), _totals(self.there)), dict(self.hidden), cause,
        )  # fmt: skip

    # -- rows ----------------------------------------------------------------------------------------------------

    def _rows(self) -> list[Row]:
        ours, theirs = _events(self.here), _events(self.there)
        pairs = align_keys([_place(step) for step in ours], [_place(step) for step in theirs])
        rows: list[Row] = []
        for i, j in pairs:
            if i is not None and j is not None:
                rows.append(self._pair(ours[i], theirs[j]))
            elif i is not None:
                rows.append(Row("only here", self._ref(self.here, ours[i]), None))
            elif j is not None:
                rows.append(Row("only there", None, self._ref(self.there, theirs[j])))
        return self._moved(rows)

    def _moved(self, rows: list[Row]) -> list[Row]:
        """An unpaired call whose equal is unpaired on the other side was moved."""
        spare: dict[str, list[int]] = {}
        for number, row in enumerate(rows):
            if row.status == "only there" and row.there is not None:
                spare.setdefault(self._identity(self.there, row.there), []).append(number)
        gone: set[int] = set()
        for number, row in enumerate(rows):
            if row.status != "only here" or row.here is None or not spare:
                continue
            match = spare.get(self._identity(self.here, row.here))
            if match:
                other = match.pop(0)
                gone.add(other)
                rows[number] = Row("moved", row.here, rows[other].there)
        return [row for number, row in enumerate(rows) if number not in gone]

    @staticmethod
    def _identity(recording: Recording, ref: CallRef) -> str:
        call = recording.by_id.get(ref.id)
        if call is None:
            return f"{ref.kind} {ref.name}"
        request = orjson.dumps(recording.request(call), option=orjson.OPT_SORT_KEYS).decode()
        return f"{call.type} {call.name} {request}"

    def _ref(self, recording: Recording, step: Step, *, words: bool = True) -> CallRef:
        if step.call is not None:
            return recorded_ref(recording, step.call, words=words)
        fields = step.fields or {}
        return CallRef(str(fields["call"]), "state", str(fields["name"]), None, str(fields.get("src", "")))

    def _pair(self, ours: Step, theirs: Step) -> Row:
        if ours.call is None or theirs.call is None:
            return self._state_pair(ours, theirs)
        a, b = ours.call, theirs.call
        request = self._quiet(_compared(self.here.request(a), self.there.request(b)))
        outcome = self._outcomes(a, b)
        if not request and outcome is None and a.status == b.status:
            return Row(
                "same", self._ref(self.here, ours, words=False), self._ref(self.there, theirs, words=False)
            )
        odds = (
            self._odds(a, b, outcome) if a.type == "model" and outcome is not None and not request else None
        )
        statuses = (a.status, b.status)
        here, there = self._ref(self.here, ours), self._ref(self.there, theirs)
        served = self._served(a, b) if a.name == b.name == LISTING else ()
        return Row("changed", here, there, request or None, outcome, statuses, odds, served)

    def _served(self, a: RecordedCall, b: RecordedCall) -> tuple[str, ...]:
        then, now = tools_in(self._answer(self.here, a)), tools_in(self._answer(self.there, b))
        return () if then is None or now is None else tuple(compare_tools(then, now))

    def _state_pair(self, ours: Step, theirs: Step) -> Row:
        name = str((ours.fields or {}).get("name"))
        then = self.here.tree(cast(str, ours.payload), f"the state {name}")
        now = self.there.tree(cast(str, theirs.payload), f"the state {name}")
        outcome = self._quiet(compare(_opened(then), _opened(now), root=name))
        goto, chose = ((step.fields or {}).get("goto") for step in (ours, theirs))
        if goto != chose:
            choice = compare({"goto": goto}, {"goto": chose}, root=name)
            rest = () if then == goto and now == chose else outcome.items
            outcome = Comparison((*choice.items, *rest), len(choice.items) + len(rest))
        here, there = self._ref(self.here, ours), self._ref(self.there, theirs)
        return Row("changed" if outcome else "same", here, there, None, outcome or None)

    def _outcomes(self, a: RecordedCall, b: RecordedCall) -> Comparison | None:
        """Differences of two outcomes (or of their chunks) that are not noise; None where there are none."""
        if not (a.chunks or b.chunks) and same_tree(
            self.here.outcome(a), self.there.outcome(b), ordered=True
        ):
            return None  # most of them; looking into texts would cost far more
        then, now = self._answer(self.here, a), self._answer(self.there, b)
        if a.type in ("now", "uuid") and a.status == b.status == "ok":
            self.hidden["times" if a.type == "now" else "ids"] += not same_tree(then, now)
            return None
        root = "" if isinstance(then, dict) and isinstance(now, dict) and a.type == "model" else "result"
        found = self._quiet(compare(then, now, root=root))
        return found or None

    @staticmethod
    def _answer(recording: Recording, call: RecordedCall) -> Tree:
        chunks = list(recording.chunks_of(call)) if call.chunks else []
        tree = recording.outcome(call)
        if call.type == "model" and (said := wire_answer(tree, chunks)) is not None:
            return _opened(said)
        if chunks:
            return [_opened(chunk) for chunk in chunks]
        if call.type == "model" and isinstance(tree, dict):
            tree = {name: value for name, value in tree.items() if name not in _ANSWER_NOISE}
        return _opened(unprinted(tree))

    def _quiet(self, comparison: Comparison) -> Comparison:
        """Take out ids and times that every run mints anew, and count them."""
        kept: list[Difference] = []
        for item in comparison.items:
            noise = _noise(item)
            if noise is None:
                kept.append(item)
            else:
                self.hidden[noise] += 1
        total = comparison.total - (len(comparison.items) - len(kept))
        return Comparison(tuple(kept), total, comparison.same, comparison.complete)

    def _odds(self, a: RecordedCall, b: RecordedCall, outcome: Comparison) -> Odds | None:
        """Probabilities of the first differing text field's two values, or of the first differing token."""
        ours, theirs = self.here.outcome(a), self.there.outcome(b)
        request = self.here.request(a)
        for item in outcome.items:
            name = item.path.rpartition(".")[2]
            if isinstance(item.recorded, str) and isinstance(item.now, str) and "." in item.path:
                choices = (item.recorded, item.now)
                odds = Odds(
                    choice_odds(ours, request, name, choices), choice_odds(theirs, request, name, choices)
                )
                if odds.here or odds.there:
                    return odds
        odds = Odds(first_token_odds(ours, theirs, request), first_token_odds(theirs, ours, request))
        return odds if odds.here or odds.there else None

    # -- where and why -------------------------------------------------------------------------------------------

    def _part(self, rows: list[Row], given: Comparison, output: Comparison) -> tuple[Part, Row | None]:
        first = next((row for row in rows if row.status != "same"), None)
        if given:
            return "input", first
        if first is not None:
            if first.status == "changed":
                return ("request" if first.request else "outcome"), first
            return first.status if first.status != "same" else "none", first
        if self.here.status != self.there.status:
            return "end", None
        return ("output" if output else "none"), None

    def _cause(self, part: Part, first: Row | None, given: Comparison, output: Comparison) -> Cause | None:
        """What the code, packages or a leak say. Of another outcome of the same request only a tool's own code can be
        the cause."""
        if part == "outcome" and first is not None and first.ref.kind == "tool":
            return self._tool_cause(first.ref.name)
        if part in ("none", "input", "outcome"):
            return None
        items: Sequence[Difference] = output.items
        if first is not None and first.request is not None:
            items = first.request.items
        elif first is not None:
            items = ()
        src = first.ref.src if first else None
        return find_cause(self.here.code_facts(), self.there.code_facts(), items, parse_src(src))

    def _tool_cause(self, tool: str) -> Cause | None:
        """The change of a tool's own function between the runs, if there is one."""
        modules = self.here.code_facts().modules, self.there.code_facts().modules
        changes = [found for found in code_changes(*modules) if found.name.rpartition(".")[2] == tool]
        return Cause("code", tuple(changes), relevant=True) if changes else None


def _events(recording: Recording) -> list[Step]:
    return [step for step in recording.steps if step.kind in ("request", "state")]


def _place(step: Step) -> str:
    if step.call is not None:
        return f"{step.call.id.partition('#')[0]} {step.call.type} {step.call.name}"
    fields = step.fields or {}
    return f"{str(fields['call']).partition('#')[0]} state {fields['name']}"


def _compared(ours: dict[str, Tree], theirs: dict[str, Tree]) -> Comparison:
    if ours == theirs and same_tree(ours, theirs):
        return Comparison((), 0)
    return compare(ours, theirs)


def _opened(tree: Tree) -> Tree:
    """JSON inside texts (a model's structured answer, a tool call's arguments) as data, so that fields can be named."""
    if isinstance(tree, str):
        if tree[:1] in ("{", "[") and len(tree) < 1_000_000:
            try:
                return cast(Tree, orjson.loads(tree))
            except orjson.JSONDecodeError:
                return tree
        return tree
    if isinstance(tree, list):
        return [_opened(item) for item in tree]
    if isinstance(tree, dict):
        return {name: _opened(value) for name, value in tree.items()}
    return tree


def _noise(item: Difference) -> str | None:
    """``ids`` or ``times`` where a difference is one that every run has."""
    if item.kind != "changed":
        return None
    name = item.path.rpartition(".")[2].partition("[")[0]
    if name in _ID_FIELDS and isinstance(item.recorded, str) and isinstance(item.now, str):
        return "ids"
    if _LIMITS.search(item.path):
        return "rate limits"
    if name in _TIME_FIELDS and item.recorded is not None and item.now is not None:
        return "times"
    found = classify(item.recorded, item.now)
    if found is None or found.guess:
        return None
    return {"uuid": "ids", "ulid": "ids", "time": "times"}.get(found.kind)


def _totals(recording: Recording) -> Totals:
    tokens: Counter[str] = Counter()
    models = [call for call in recording.calls if call.type == "model"]
    for call in models:
        usage: Tree = call.usage
        if usage is None and call.status == "ok" and not call.chunks:
            answer = recording.outcome(call)
            usage = answer.get("usage") if isinstance(answer, dict) else None
        for name, value in usage.items() if isinstance(usage, dict) else ():
            if isinstance(value, int) and not isinstance(value, bool):
                tokens[name] += value
    end = recording.end
    seconds = None if end is None else (cast(int, end["at"]) - cast(int, recording.start["at"])) / 1e9
    return Totals(len(recording.calls), len(models), dict(tokens), seconds)


def _why(part: Part, first: Row | None, cause: Cause | None) -> str:
    """One word for machines: ``sampling``, ``result``, ``code``, ``input``, ``packages``, ``leak``, ``unknown``."""
    if part in ("none", "input"):
        return "" if part == "none" else "input"
    if part == "outcome" and first is not None and cause is None:
        return "sampling" if first.ref.kind == "model" else "result"
    return cause.kind if cause is not None else "unknown"
