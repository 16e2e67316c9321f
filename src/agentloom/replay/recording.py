"""A parsed trace as a replay reads it: calls by id, and every step of the run in one order.

A step is anything that must happen again at the same point: a request, a delivery (outcome, chunk, timer,
cancellation), a call that the agent ended itself, a deterministic result. Payloads are resolved when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast

from agentloom.errors import FormatError, PayloadMissing
from agentloom.format.journal import Entry, Journal
from agentloom.format.values import Tree, decode
from agentloom.runtime.calls import Status
from agentloom.runtime.changes import read_rule
from agentloom.runtime.profiles import Profile, get
from agentloom.runtime.redaction_secrets import Secret, secrets_in

if TYPE_CHECKING:
    from agentloom.replay.cause import CodeFacts
    from agentloom.replay.code import ModuleSource

__all__ = ["RecordedCall", "Recording", "Step", "Tick"]

T = TypeVar("T")
StepKind = Literal["request", "outcome", "chunk", "timer", "cancel", "turn", "left", "state"]
_PASSIVE = frozenset(("note", "flag", "tag", "gap", "erase", "seal", "index", "segment", "rehash"))
_SAID = frozenset(("answer", "signal"))


@dataclass(init=False, eq=False)  # with an __init__ of its own: of its many members most are seldom set
class RecordedCall:
    """One recorded host call. ``index`` counts requests from 1; ``status`` is None where the run died in the call."""

    index: int
    id: str
    type: str
    name: str
    key: str
    profile: str
    req: str
    src: str
    parent: str | None
    effect: str | None
    seq: int
    attempt: int = 1
    status: Status | None = None
    value: str | None = None
    usage: dict[str, Tree] | None = None
    dur: int | None = None
    vt: int = 0
    chunks: int = 0
    ask: dict[str, Tree] | None = None  # the last suspend entry of the call
    rule: str | None = None  # the blob of a changed profile
    left: bool = False  # ended by the agent itself: cancelled, left early, or a child agent's result

    def __init__(self, index: int, entry: Entry) -> None:
        """The call of a request entry."""
        self.index = index
        self.id = entry["call"]
        self.type = entry["type"]
        self.name = entry["name"]
        self.key = entry["key"]
        self.profile = entry["profile"]
        self.req = entry["req"]
        src, parent, effect = entry.get("src"), entry.get("parent"), entry.get("effect")
        self.src = src if type(src) is str else ""
        self.parent = parent if type(parent) is str else None
        self.effect = effect if type(effect) is str else None
        self.seq = entry["seq"]
        if "attempt" in entry:
            self.attempt = _of_type(int, entry["attempt"]) or 1
        if "rule" in entry:
            self.rule = entry["rule"]


@dataclass(init=False, eq=False)
class Step:
    """One thing that happened. ``vt`` is virtual time in nanoseconds; ``payload`` a blob id.

    ``left``: the agent ended the call itself (its status says how). A chunk is item ``item`` of its payload.
    """

    kind: StepKind
    seq: int
    call: RecordedCall | None = None
    d: int | None = None
    vt: int = 0
    payload: str | None = None
    item: int = 0
    offset: int = 0
    fields: dict[str, Tree] | None = None
    used: bool = False

    def __init__(
        self,
        kind: StepKind,
        seq: int,
        call: RecordedCall | None = None,
        d: int | None = None,
        vt: int = 0,
        payload: str | None = None,
    ) -> None:
        self.kind = kind
        self.seq = seq
        self.call = call
        self.d = d
        self.vt = vt
        self.payload = payload


class Tick(NamedTuple):
    """Time that went by without an event, up to ``vt`` (ns), seen at the ``reads``-th reading of the run's clock since
    the delivery before; ``before`` is the index of the step that comes next. No step: nothing diverges by it."""

    before: int
    reads: int
    vt: int


@dataclass(slots=True, eq=False)
class Recording:
    """A run's recording. ``nonce`` is None where a payload was erased: then keys cannot be recomputed.

    ``total`` is given where only some calls of a large trace were read: how many there are (``replay/glance.py``).
    """

    journal: Journal
    start: dict[str, Tree]
    calls: list[RecordedCall]
    by_id: dict[str, RecordedCall]
    steps: list[Step]
    end: dict[str, Tree] | None
    nonce: bytes | None
    unsupported: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    gaps: list[dict[str, Tree]] = field(default_factory=list[dict[str, Tree]])
    marks: list[dict[str, Tree]] = field(default_factory=list[dict[str, Tree]])
    ticks: list[Tick] = field(default_factory=list[Tick])
    said: list[dict[str, Tree]] = field(default_factory=list[dict[str, Tree]])
    """What was said to the run from outside, as it was taken."""
    asks: set[str] = field(default_factory=set[str])
    """The ids of all that was asked, in void entries too."""
    void: set[int] = field(default_factory=set[int])
    """The numbers of the entries that do not count any more."""
    epochs: list[dict[str, Tree]] = field(default_factory=list[dict[str, Tree]])
    """The entries with which other processes went on."""
    total: int | None = None
    _batch: tuple[str, list[Tree]] = ("", [])
    _facts: CodeFacts | None = None
    _profiles: dict[tuple[str, str | None], Profile] = field(
        default_factory=dict[tuple[str, "str | None"], Profile]
    )
    _payloads: dict[str, Tree] = field(default_factory=dict[str, Tree])

    @classmethod
    def from_journal(cls, journal: Journal, before: int | None = None) -> Recording:
        """Read the entries once, those from number ``before`` on as void. Raises ``FormatError`` where the journal does
        not begin with a start entry."""
        return _Reader(journal, {}).read(before)

    @classmethod
    def of_part(cls, journal: Journal, numbers: Mapping[int, int], total: int) -> Recording:
        """Some entries of a trace of ``total`` calls; ``numbers`` gives the index of each request by its seq."""
        part = _Reader(journal, numbers).read()
        part.total = total
        return part

    @property
    def count(self) -> int:
        """How many calls the run has, read or not."""
        return len(self.calls) if self.total is None else self.total

    @property
    def run(self) -> str:
        """The run's id."""
        return str(self.start["run"])

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.start["agent"])

    @property
    def entry(self) -> str:
        """Where the agent is defined: ``module:qualname``."""
        return str(self.start["entry"])

    @property
    def seed(self) -> int | None:
        """The run's seed, if it was given one."""
        return cast("int | None", self.start.get("seed"))

    @property
    def closed(self) -> bool:
        """Whether the run ended; False where its process died."""
        return self.end is not None

    @property
    def status(self) -> str | None:
        """``completed``, ``failed`` or ``cancelled``; None where the process died."""
        return None if self.end is None else str(self.end["status"])

    def payload(self, name: str) -> Tree:
        """A payload of the start entry (``code``, ``env``, ``input``, ...), or None where the run has none. It is put
        together once, and not to be changed."""
        if name not in self._payloads:
            blob = self.start.get(name)
            self._payloads[name] = None if blob is None else self.tree(cast(str, blob), f"the run's {name}")
        return self._payloads[name]

    @property
    def guard(self) -> str:
        """The policy of the run's guard: ``off`` also where the trace is from before there was one."""
        policy = self.payload("policy")
        chosen = policy.get("guard") if isinstance(policy, dict) else None
        return chosen if isinstance(chosen, str) else "off"

    def variables(self) -> dict[str, Tree]:
        """The environment variables that the run read, by name (see ``vars`` of entries); None: not set."""
        found: dict[str, Tree] = {}
        for entry in self.journal.entries[1:]:
            blob = entry.get("vars")
            if isinstance(blob, str):
                given = cast("dict[str, Tree]", decode(self.tree(blob, "the environment that the run read")))
                for name, value in given.items():
                    found.setdefault(name, value)
        return found

    def secrets(self) -> dict[int, Secret]:
        """The secrets that the trace has placeholders for, by number; none where what says so was erased."""
        try:
            return secrets_in(self.journal)
        except PayloadMissing:
            return {}

    def output(self) -> Tree:
        """The output, or the error tree of a failed run."""
        if self.end is None:
            return None
        blob = self.end.get("val", self.end.get("err"))
        return None if blob is None else self.tree(cast(str, blob), "the run's output")

    def request(self, call: RecordedCall) -> dict[str, Tree]:
        """The request as written. ``FormatError`` where it is none."""
        what = f"the request of call {call.index} ({call.id})"
        tree = self.tree(call.req, what, call)
        if not isinstance(tree, dict):
            raise FormatError(
                "entry.field", f"{what} is no mapping", hint="get an undamaged copy", blob=call.req
            )
        return tree

    def profile(self, call: RecordedCall) -> Profile:
        """The profile that sorted the request. Raises ``NotSupported`` for one that nobody here knows, ``FormatError``
        and ``PayloadMissing`` where its rule cannot be read."""
        made = self._profiles.get((call.profile, call.rule))
        if made is None:
            if call.rule is None:
                made = get(call.profile)
            else:
                made = read_rule(
                    call.profile, self.tree(call.rule, f"the rule of profile {call.profile}", call)
                )
            self._profiles[call.profile, call.rule] = made
        return made

    def outcome(self, call: RecordedCall) -> Tree:
        """The value or the error tree of a call; None where it has none."""
        if call.value is None:
            return None
        return self.tree(call.value, f"the outcome of call {call.index} ({call.id})", call)

    def result(self, call: RecordedCall) -> tuple[Tree, bool]:
        """The outcome, and whether it is its own value and nobody else's (``Journal.value``)."""
        if call.value is None:
            return None, True
        try:
            return self.journal.value(call.value)
        except PayloadMissing:
            return self.outcome(call), False  # which says what is missing

    def chunk(self, step: Step) -> Tree:
        """The value of a chunk step."""
        blob = cast(str, step.payload)
        if self._batch[0] != blob:  # a batch holds many chunks; the last one is kept
            call = cast(RecordedCall, step.call)
            what = f"chunks of call {call.index} ({call.id})"
            self._batch = (blob, cast("list[Tree]", self.tree(blob, what, call)))
        batch = self._batch[1]
        if not isinstance(batch, list) or step.item >= len(batch):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise FormatError(
                "entry.field",
                f"entry {step.seq} has more chunks than its payload {blob[:12]}",
                hint="get an undamaged copy",
            )
        return batch[step.item]

    def chunks_of(self, call: RecordedCall) -> Iterator[Tree]:
        """All chunks of a streamed call, in order."""
        for step in self.steps:
            if step.kind == "chunk" and step.call is call:
                yield self.chunk(step)

    def tree(self, blob: str, what: str, call: RecordedCall | None = None) -> Tree:
        """A payload's tree. Raises ``PayloadMissing`` that names ``what``, the call and the blob."""
        try:
            return self.journal.tree(blob)
        except PayloadMissing as missing:
            gone = str(missing.fields.get("blob", blob))  # of a large payload it may be a part
            part = "" if gone == blob else f"{gone}, a part of "
            raise PayloadMissing(
                f"{what} is no longer in the trace (payload {part}{blob})",
                hint="it was erased or lost; this call cannot be replayed, everything before it can",
                call=call.id if call else None,
                index=call.index if call else None,
                blob=gone,
            ) from missing

    def code_facts(self) -> CodeFacts:
        """Sources, revision, packages and interpreter as recorded; what was erased or never kept is left empty."""
        if self._facts is None:
            try:
                code, env = self.payload("code"), self.payload("env")
            except PayloadMissing:
                code = env = None
            self._facts = facts_of(code, env)
        return self._facts

    def seconds(self, first: int, last: int) -> float:
        """How long it took when recorded, by the clock on the wall, between the entries with these numbers."""
        entries = self.journal.entries
        began, ended = (_of_type(int, entries[seq].get("at")) or 0 for seq in (first, last))
        return max(0, ended - began) / 1e9

    @property
    def epoch(self) -> int:
        """How many processes have written the run."""
        return max(
            [cast(int, entry["epoch"]) for entry in self.epochs if entry["kind"] == "resume"], default=1
        )

    @property
    def reached(self) -> tuple[int, int]:
        """The last delivery number, and the virtual time (ns) that the run had come to."""
        last = vt = 0
        for entry in self.journal.entries:
            if entry["seq"] in self.void:
                continue
            rows = [(entry.get("d"), entry.get("vt"))]
            if entry["kind"] == "chunks":
                rows = [(row[0], row[1]) for row in entry["items"]]
            for d, at in rows:
                last = max(last, d if type(d) is int else 0)
                vt = max(vt, at if type(at) is int else 0)
        return last, vt

    def open_asks(self) -> list[RecordedCall]:
        """The calls that wait for what no process does."""
        return [call for call in self.calls if call.ask is not None and call.status is None]

    def replayable(self) -> None:
        """Raise ``FormatError`` where the trace holds entries that this version cannot replay."""
        for seq, kind in self.unsupported:
            raise FormatError(
                "unknown-entry",
                f"entry {seq} is of the unknown kind {kind!r} and may change what replay must do",
                hint="use a newer agentloom to replay this trace",
                entry=seq,
            )


def facts_of(code: Tree, env: Tree) -> CodeFacts:
    """``CodeFacts`` from the trees of a start entry's ``code`` and ``env`` payloads."""
    from agentloom.replay.cause import CodeFacts
    from agentloom.replay.code import ModuleSource

    code_map = code if isinstance(code, dict) else {}
    env_map = env if isinstance(env, dict) else {}
    modules: dict[str, ModuleSource] = {}
    recorded = code_map.get("modules")
    for name, item in recorded.items() if isinstance(recorded, dict) else ():
        if isinstance(item, dict) and isinstance(item.get("source"), str):
            modules[name] = ModuleSource(cast(str, item["source"]), str(item.get("file") or name))
    listed = code_map.get("packages")
    packages = _versions(tuple(map(str, listed))) if isinstance(listed, list) else {}
    interpreter = {
        name: str(env_map[name]) for name in ("python", "implementation", "machine") if env_map.get(name)
    }
    return CodeFacts(modules, _revision(code_map.get("vcs")), packages, interpreter)


@lru_cache(maxsize=4)
def _versions(listed: tuple[str, ...]) -> dict[str, str]:
    """The version of each package from ``name==version``; not to be changed."""
    return {name: version for name, _, version in (item.partition("==") for item in listed)}


def _revision(vcs: Tree) -> str:
    if not isinstance(vcs, dict) or not isinstance(vcs.get("commit"), str):
        return ""
    return cast(str, vcs["commit"])[:7] + ("+changes" if vcs.get("dirty") else "")


def _of_type(cls: type[T], value: object) -> T | None:
    """What a member that a writer may leave out holds; one of another type counts as left out."""
    return value if type(value) is cls else None


def _void(entries: Sequence[Entry]) -> set[int]:
    """The numbers of the entries that were retracted."""
    void: set[int] = set()
    for entry in entries:
        if entry["kind"] == "retract":
            void.update(range(entry["from"], entry["seq"]))
    return void


class _Reader:
    """One pass over the entries."""

    def __init__(self, journal: Journal, numbers: Mapping[int, int]) -> None:
        entries = journal.entries
        if not entries or entries[0].get("kind") != "start":
            raise FormatError("no-start", "the trace does not begin with a start entry", line=1)
        self.out = Recording(journal, entries[0], [], {}, [], None, journal.nonce)
        self._numbers = numbers
        self._chunks: list[Step] = []
        self._handlers = {
            "request": self._request,
            "outcome": self._outcome,
            "chunks": self._chunk_batch,
            "timer": self._event,
            "cancel": self._event,
            "turn": self._event,
            "tick": self._tick,
            "state": self._state,
            "end": self._end,
            "suspend": self._suspend,
        }

    def read(self, before: int | None = None) -> Recording:
        out, handlers = self.out, self._handlers
        void = out.void = _void(out.journal.entries)
        if before is not None:
            void.update(range(before, len(out.journal.entries)))
        for entry in out.journal.entries[1:]:
            kind = entry["kind"]
            if kind == "suspend":
                out.asks.add(entry["ask"])
            if void and entry["seq"] in void:
                if kind in ("resume", "retract"):
                    out.epochs.append(entry)
                continue
            handler = handlers.get(kind)
            if self._chunks and kind != "chunks":
                self._flush()
            if handler is not None:
                handler(entry)
            elif kind == "gap":
                out.gaps.append(entry)
            elif kind in _SAID:
                out.said.append(entry)
            elif kind in ("resume", "retract"):
                out.epochs.append(entry)
            elif kind in _PASSIVE:
                out.marks.append(entry)
            else:
                out.unsupported.append((entry["seq"], kind))
        self._flush()
        handlers.clear()  # they hold this reader, and it the whole trace: a cycle
        return out

    def _flush(self) -> None:
        """Chunks of several calls may be written in batches of one call each; delivery numbers give their order."""
        self._chunks.sort(key=lambda step: step.d or 0)
        self.out.steps += self._chunks
        self._chunks = []

    def _request(self, entry: Entry) -> None:
        out = self.out
        call = RecordedCall(self._numbers[entry["seq"]] if self._numbers else len(out.calls) + 1, entry)
        out.calls.append(call)
        out.by_id[call.id] = call
        out.steps.append(Step("request", call.seq, call))

    def _outcome(self, entry: Entry) -> None:
        call = self._call(entry)
        call.status = entry["status"]
        call.value = entry.get("err" if call.status == "error" else "val")
        call.usage = _of_type(dict, entry.get("usage"))
        call.dur = _of_type(int, entry.get("dur"))
        call.vt = entry.get("vt", 0)
        d = entry.get("d")
        call.left = d is None
        kind: StepKind = "left" if d is None else "outcome"
        self.out.steps.append(Step(kind, entry["seq"], call, d, call.vt, call.value))

    def _chunk_batch(self, entry: Entry) -> None:
        call = self._call(entry)
        seq, payload = entry["seq"], entry["val"]
        for item, row in enumerate(entry["items"]):
            call.chunks += 1
            step = Step("chunk", seq, call, row[0], row[1], payload)
            step.item, step.offset = item, row[2]
            self._chunks.append(step)

    def _event(self, entry: Entry) -> None:
        kind = entry["kind"]
        self.out.steps.append(Step(kind, entry["seq"], None, entry["d"], entry["vt"]))

    def _tick(self, entry: Entry) -> None:
        self.out.ticks.append(Tick(len(self.out.steps), entry["reads"], entry["vt"]))

    def _state(self, entry: Entry) -> None:
        payload = entry.get("val")
        step = Step("state", entry["seq"], payload=payload)
        step.fields = entry
        self.out.steps.append(step)

    def _suspend(self, entry: Entry) -> None:
        self._call(entry).ask = entry

    def _end(self, entry: Entry) -> None:
        self.out.end = entry

    def _call(self, entry: Entry) -> RecordedCall:
        call = self.out.by_id.get(entry["call"])
        if call is None:
            raise FormatError(
                "unknown-call",
                f"entry {entry['seq']} names call {entry['call']}, which has no request",
                entry=entry["seq"],
            )
        return call
