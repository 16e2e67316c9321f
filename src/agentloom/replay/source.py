"""The outcome source of a replay: answers every host call from a recording, in the recorded order, never live.

The call id selects and the key checks. Everything that happened has one place in the recorded order (``Step``); the
source walks it. What does not fit becomes one :class:`Finding`, kept here, and ``Diverged``; the real functions that
the engine hands over are never called.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

import orjson

from agentloom.errors import ControlFlow, Diverged, LoomError, Suspend
from agentloom.format.guards import is_map
from agentloom.format.values import Tree
from agentloom.replay.agreement import agree, ordered
from agentloom.replay.endings import agent_ends, recording_ends
from agentloom.replay.fields import Comparison, Difference, compare, same_tree
from agentloom.replay.mismatch import Judge, goto_finding, identity, identity_recorded
from agentloom.replay.patience import RealTime
from agentloom.replay.recording import RecordedCall, Recording, Step
from agentloom.replay.report import CallRef, Counts, Finding, Noted
from agentloom.replay.shuffle import Shuffle
from agentloom.replay.summaries import fate, happened, recorded_ref, ref_now
from agentloom.runtime.calls import Arrival, Call, CallSpec, Status
from agentloom.runtime.changes import describe
from agentloom.runtime.minted import align_ids
from agentloom.runtime.profiles import Profile, parts_of
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.source import StateEntry

__all__ = ["ReplaySource"]

T = TypeVar("T")
_SECOND = 1_000_000_000
_DELIVERED = frozenset(("outcome", "chunk", "timer"))
_BY_CALLS = frozenset(("request", "outcome", "chunk"))
_ENDED_BEFORE = "The agent waits for its outcome; when recorded the run ended before it came."


class ReplaySource:
    """Serves ``recording``. After the run: ``finding`` (None: everything matched), ``counts``, ``noted``."""

    def __init__(self, recording: Recording) -> None:
        self.on_arrival: Callable[[], None] | None = None
        self.on_finding: Callable[[], None] | None = None
        """Called when the first finding is made, before the program hears of it."""
        self.recording = recording
        self.finding: Finding | None = None
        self.unusable: LoomError | None = None
        self.noted: list[Noted] = []
        self.complete = False
        self.lacks: tuple[str, ...] = ()
        """Names of what the run was not given now, because the trace does not hold it."""
        self.until: int | None = None
        """The number of the last call to replay: where the next one is made, the replay ends. None: the last one."""
        self.waits = False
        """The run was left waiting for somebody, and so far everything matched."""
        self._steps = recording.steps
        self._at = 0
        self._matched = 0
        self._vt = 0
        self._tick = 0  # index of the next tick
        self._slack = (
            0  # the most that one moved the clock: so much later is a deadline, where it came too early
        )
        self._real = RealTime()
        self._open: dict[str, RecordedCall] = {}
        self._waiting: dict[str, Call] = {}
        self._unclosed: dict[str, Step] = {}
        self._odd: list[Call] = []
        self._shuffle: Shuffle | None = None
        self.remarks: dict[str, None] = {}
        """What differs in how the program declares its calls, in words; each once."""
        self._noted_names: dict[str, frozenset[str]] = {}
        self._by_name: dict[tuple[str, str], RecordedCall] = {}
        self._ruled = any(call.rule is not None for call in recording.calls)
        self._keyed = recording.nonce is not None
        self.redactor: Redactor | None = None
        self.redact: Callable[[], Callable[[Call], bool] | None] = _nobody
        """Gives what makes of a request what would be written of it, which is asked where it is not what was
        recorded."""

    # -- what was found ------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """How many recorded calls matched so far."""
        noted = len(self.noted)
        return Counts(self._matched - noted, noted, len(self.recording.calls) - self._matched)

    @property
    def position(self) -> int:
        """Index of the next step that was not reached."""
        return self._at

    def _failed(self, finding: Finding) -> Diverged:
        """Keep the first finding; the exception to raise."""
        if self.finding is None:
            first = finding if self._shuffle is None else self._shuffle.given_up()
            self.finding = finding if finding.cls == "reordered" else first
            if self.on_finding is not None:
                self.on_finding()
        finding = self.finding
        where = f" at {finding.call.kind} {finding.call.name}" if finding.call else ""
        return Diverged(f"the replay diverged ({finding.cls}){where}: {finding.message}")

    def _guard(self) -> None:
        """Raise the kept verdict again: nothing is served after it."""
        if self.unusable is not None:
            raise Diverged(str(self.unusable))
        if self.finding is not None:
            raise self._failed(self.finding)

    def _judged(self, *, quiescent: bool) -> Diverged:
        if self._at >= len(self._steps) and self._cut_short:
            return self._failed(recording_ends(self.recording, self._odd[0]))
        return self._failed(Judge(self.recording, self._at, self._odd, quiescent).finding())

    def refuse(self, finding: Finding) -> Diverged:
        """Keep a finding from outside the calls (a refused effect); the exception to raise where it happened."""
        return self._failed(finding)

    def recording_ends(self) -> Finding:
        """The finding where the trace stops and the program would go on."""
        return recording_ends(self.recording, None)

    # -- the input -----------------------------------------------------------------------------------------------

    def input_differs(self, now: Tree) -> Comparison | None:
        """How what the run is given now differs from what it was given when recorded; None where it does not."""
        return self.differs(self.recording.payload("input"), now, "input")

    def differs(self, then: Tree, now: Tree, root: str) -> Comparison | None:
        """How ``now`` differs from ``then``, as it was written; None where it does not. ``root``: the path of both."""
        now, same = self._beside(then, now)
        if not same and self.redactor is not None:
            now = self.redactor.clean(now)  # a secret of today is no more for reports than one of then
        found = None if same else compare(then, now, root=root)
        return found if found is not None and found.items else None

    # -- requests ------------------------------------------------------------------------------------------------

    def recorded_rule(self, call_id: Callable[[], str], spec: CallSpec, rule: Profile) -> Profile:
        """The profile of the recorded request with that id, else of another one of that kind and name, if it is one of
        the same family; a difference to the program's own is remarked on."""
        if rule.rule is None and not self._ruled:
            return rule
        recorded = self.recording.by_id.get(call_id())
        if (
            recorded is None
            or recorded.type != spec.type
            or recorded.profile.partition("+")[0] != spec.profile
        ):
            recorded = self._alike(spec)
        if recorded is None or (recorded.rule is None and rule.rule is None):
            return rule
        found = recorded
        then = self._payload(lambda: self.recording.profile(found))
        if then.rule != rule.rule:
            what = f"the profile of {spec.type} {spec.name} was {describe(then)}; the program says {describe(rule)}"
            self.remarks[f"{what}. Compared by the recorded one; record again to use the other"] = None
        return then

    def _alike(self, spec: CallSpec) -> RecordedCall | None:
        if not self._by_name:
            for call in reversed(self.recording.calls):
                self._by_name[call.type, call.name] = call
        found = self._by_name.get((spec.type, spec.name))
        return found if found is not None and found.profile.partition("+")[0] == spec.profile else None

    def begin(self, call: Call) -> None:
        """Match the request with the next recorded one; a mismatch waits until it can be judged."""
        if self.until is not None and call.index > self.until and not self._odd:
            self.complete = True
            raise Suspend
        if self.finding is not None or self.unusable is not None:
            self._guard()
        if not self._odd:
            step = self._step()
            recorded = step.call if step is not None and step.kind == "request" else None
            if recorded is not None and recorded.id == call.id:
                same = recorded.key == call.key if self._keyed else self._same_request(recorded, call)
                same = same or self._same_redacted(recorded, call)
                if same or self._same_but_for_ids(recorded, call):
                    self._at += 1
                    self._matched += 1
                    self._open[call.id] = recorded
                    if same:
                        self._compare_noted(recorded, call)
                    return
        _ = call.src  # for the report, while it can be found
        self._odd.append(call)

    def _same_request(self, recorded: RecordedCall, call: Call) -> bool:
        """Whether it is the same one, of a trace whose keys cannot be made any more."""
        return identity(self.recording, call) == identity_recorded(self.recording, recorded)

    def _same_redacted(self, recorded: RecordedCall, call: Call) -> bool:
        """Whether it is the same one as written: with placeholders for its secrets, numbered as the trace
        numbers them."""
        redactor, redact = self.redactor, self.redact()
        if redactor is None or redact is None or not redact(call):
            return False
        same = self._agrees(recorded, call, redactor)
        if same is None:
            for one in call.grown.values():
                one.twin = None  # what it extends is written as the trace numbers it
            redact(call)
            same = self._agrees(recorded, call, redactor)
        if call.kept is not None:
            call.tree = call.kept.tree  # what reports say of it
        return same is True

    def _agrees(self, recorded: RecordedCall, call: Call, redactor: Redactor) -> bool | None:
        """Whether a redacted request is the recorded one. None: at least a part of it is but for numbers, which were
        told to the redactor."""
        if recorded.name != call.name or recorded.type != call.type or recorded.profile != call.profile:
            return False
        if self._keyed and recorded.key == call.key:
            return True
        profile = self._payload(lambda: self.recording.profile(recorded))
        then = parts_of(profile, self._payload(lambda: self.recording.request(recorded)), "key")
        if same_tree(then, call.key_tree):
            return True
        return None if agree(redactor, ordered(then), ordered(call.key_tree)) else False

    def _as_written(self, then: Tree, now: Tree) -> Tree:
        """``now`` as it would be written, where that is what was recorded; else as it is."""
        redactor = self.redactor
        if redactor is None:
            return now
        written = redactor.clean(now)
        return redactor.tree(now) if written is not now and agree(redactor, then, written) else written

    def _beside(self, then: Tree, now: Tree) -> tuple[Tree, bool]:
        """``now``, as it would be written where it is not what was recorded, and whether it is that then."""
        if same_tree(then, now, ordered=True):
            return now, True
        written = self._as_written(then, now)
        return written, same_tree(then, written, ordered=True)

    def _same_but_for_ids(self, recorded: RecordedCall, call: Call) -> bool:
        """Whether only ids differ that a framework stamps afresh in every process; they are noted then."""
        if (recorded.type, recorded.name, recorded.profile) != (call.type, call.name, call.profile):
            return False
        profile = self._payload(lambda: self.recording.profile(recorded))
        if not profile.minted:
            return False
        tree = self._payload(lambda: self.recording.request(recorded))
        then = parts_of(profile, tree, "key")
        if not same_tree(then, align_ids(profile.minted, call.key_tree, then)):
            return False
        self._note(recorded, call, compare(tree, call.tree))
        return True

    def _note(self, recorded: RecordedCall, call: Call, comparison: Comparison | None) -> None:
        """Keep what differs in a call that matched: fields that are only noted, and a tool's effect as declared."""
        then, now = recorded.effect, call.spec.effect
        if then != now:
            effect = Difference("effect", "changed", then, now)
            if comparison:
                items = (*comparison.items, effect)
                comparison = replace(comparison, items=items, total=comparison.total + 1)
            else:
                comparison = Comparison((effect,), 1)
            words = f"{call.type} {call.name} was recorded with effect {then} and is declared {now} now"
            self.remarks[f"{words}: a replay runs no tool, but what runs live goes by what is declared"] = (
                None
            )
        if comparison:
            self.noted.append(Noted(ref_now(call, recorded, recorded.index), comparison))

    def _compare_noted(self, recorded: RecordedCall, call: Call) -> None:
        """Count a match whose noted fields differ. A request without such fields costs nothing here."""
        if not call.noted and not self._has_noted(recorded, call):
            if recorded.effect != call.spec.effect:
                self._note(recorded, call, None)
            return
        tree = self._payload(lambda: self.recording.request(recorded))
        if call.rule is not None and not call.rule.whole:
            self._note(recorded, call, compare(tree, call.tree))
            return
        then = parts_of(self._payload(lambda: self.recording.profile(recorded)), tree, "noted")
        self._note(recorded, call, compare(then, dict(call.noted)))

    def _has_noted(self, recorded: RecordedCall, call: Call) -> bool:
        """Whether the recorded request has fields beside the load-bearing ones: by the names that it was written with,
        else by its number of fields."""
        if call.rule is not None and (call.rule.strict or not call.rule.whole):
            return True
        names = self._noted_names.get(recorded.profile)
        if names is None:
            profile = self._payload(lambda: self.recording.profile(recorded))
            names = self._noted_names[recorded.profile] = profile.noted
        if not names:
            return False
        try:
            fields: object = orjson.loads(self.recording.journal.text(recorded.req))
        except ValueError:
            fields = None
        if is_map(fields) and next(iter(fields), "$")[:1] != "$" and names.isdisjoint(fields):
            return False
        return len(self._payload(lambda: self.recording.request(recorded))) != len(call.key_tree)

    # -- blocking calls ------------------------------------------------------------------------------------------

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        if self.finding is not None or self.unusable is not None:
            self._guard()
        if self._odd:
            return self._out_of_order(call, quiescent=False)
        return self._next_for(call)

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        self._guard()
        if self._odd:
            raise self._judged(quiescent=False)

    def next_inline(self, call: Call) -> Arrival:
        self._guard()
        if self._odd:
            raise self._judged(quiescent=False)
        return self._next_for(call)

    def _next_for(self, call: Call) -> Arrival:
        """The next step, which must be a delivery to this blocking call."""
        step = self._step()
        recorded = self._open[call.id]
        if step is not None and step.kind in ("outcome", "chunk") and step.call is recorded:
            return self._hand_over(step, call)
        if step is None and self._left_waiting(call):
            self.complete = self.waits = True
            raise Suspend
        if step is None and self._cut_short:
            raise self._failed(recording_ends(self.recording, call))
        if recorded.left and recorded.status in ("closed", "cancelled"):
            raise self._reads_on(call, recorded)
        message = (
            f"It is waited for at once now; when recorded {happened(step)} came first."
            " Was it awaited, or made in another thread?"
        )
        ref = ref_now(call, recorded, recorded.index)
        raise self._failed(Finding("changed", ref, message, reason="blocking"))

    def _out_of_order(self, call: Call, *, quiescent: bool) -> Arrival:
        """Answer a call that may have come before its turn, the only one that is waited for; else its verdict."""
        if self._shuffle is None and len(self._odd) == 1:
            self._step()
            self._shuffle = Shuffle.begin(self.recording, self._at, call, quiescent=quiescent)
        shuffle = self._shuffle
        recorded = None if shuffle is None or call.spec.stream else shuffle.take(call)
        if shuffle is None or recorded is None or len(shuffle.made) != len(self._odd):
            raise self._judged(quiescent=quiescent)
        found = shuffle.finding()
        if found is not None:
            raise self._failed(found)
        return Arrival.of_record(
            "outcome", call, cast("Status", recorded.status), vt=self._vt, usage=recorded.usage,
            tree=self._payload(lambda: self.recording.outcome(recorded)), dur=recorded.dur,
        )  # fmt: skip

    # -- awaited calls -------------------------------------------------------------------------------------------

    def cut_off(self, call: Call) -> float | None:
        """Of a call that is awaited in place: the seconds after which the agent cancelled it when recorded, where that
        is what comes next; else None."""
        recorded = self._open.get(call.id)
        if recorded is None or recorded.status != "cancelled" or recorded.chunks != call.chunks or self._odd:
            return None
        step = self._step()
        if step is None or step.kind != "left" or step.call is not recorded:
            return None
        return self.recording.seconds(recorded.seq, step.seq)

    def comes_first(self, call: Call | None, spec: CallSpec) -> bool:
        """Whether something that others of the run do or wait for comes before this call's next delivery, or, where
        there is no ``call`` yet, before its request."""
        if self.finding is not None or self.unusable is not None or self._odd:
            return False
        step = self._step()
        if step is None or step.call is None:
            return step is not None and step.kind == "timer"
        if call is not None:
            return step.kind in _BY_CALLS and step.call is not self._open.get(call.id)
        if step.kind == "request":
            return (step.call.type, step.call.name) != (spec.type, spec.name)
        return step.kind in _BY_CALLS

    def follows_another(self, call: Call) -> bool:
        """Whether what came last was for another task: that has things to do before the one of this call goes on."""
        last = self._steps[self._at - 1] if self._at else None
        return last is not None and last.kind in _DELIVERED and last.call is not self._open.get(call.id)

    def fired(self) -> Arrival | None:
        """A timer of the loop that runs goes off beside a call in place: the recorded event, where that is next."""
        step = None if self.finding is not None or self._odd else self._step()
        if step is None or step.kind != "timer":
            return None
        return self._passed(step, Arrival.of_record("timer", vt=step.vt))

    def until_next(self) -> float:
        """Seconds between what came last and what comes next, when recorded."""
        step = self._step()
        before = self._steps[self._at - 1].seq if self._at else 0
        return 0.0 if step is None else self.recording.seconds(before, step.seq)

    def left_behind(self, call: Call) -> float | None:
        """Of a call in place that was under way when the recorded run ended: the seconds after which that was; else
        None."""
        recorded, end = self._open.get(call.id), self.recording.end
        if recorded is None or end is None or recorded.status is not None or recorded.chunks != call.chunks:
            return None
        return self.recording.seconds(recorded.seq, cast(int, end["seq"]))

    def not_left_behind(self, call: Call) -> Diverged:
        """The finding where the run does not end while it is under way."""
        recorded = self._open[call.id]
        ref = ref_now(call, recorded, recorded.index)
        return self._failed(Finding("extra", ref, _ENDED_BEFORE, reason="past the end"))

    def cancelled_since(self, position: int) -> float | None:
        """Whether somebody outside cancelled the run's inner loop between there and here when recorded: after so many
        seconds."""
        steps = self._steps[position : self._at]
        cancel = next((step for step in steps if step.kind == "cancel"), None)
        return None if cancel is None else self.recording.seconds(max(0, steps[0].seq - 1), cancel.seq)

    def not_cancelled(self, call: Call | None, waited: float) -> Diverged:
        """The finding where nothing cancels what was cancelled when recorded."""
        recorded = None if call is None else self._open.get(call.id)
        ref = None if recorded is None else self._ref(recorded)
        message = f"When recorded it was cancelled here; now nothing has cancelled it for {waited:.1f} s."
        return self._failed(Finding("changed", ref, message, reason="ended by the agent"))

    def start(self, call: Call, perform: Callable[[], Awaitable[object]]) -> None:
        self._note_waiting(call)

    def start_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        self._note_waiting(call)

    def prepare_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        self._note_waiting(call)

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        self._guard()

    def want(self, call: Call) -> None:
        self._note_waiting(call)

    def _note_waiting(self, call: Call) -> None:
        self._guard()
        self._waiting[call.id] = call

    def poll(self, timer: int | None) -> Arrival | None:
        """The next recorded delivery. Raises ``Diverged`` where the agent did not get as far as when recorded."""
        self._guard()
        if self._odd:
            if list(self._waiting) != [self._odd[-1].id]:
                raise self._judged(quiescent=True)
            return self._out_of_order(self._waiting.pop(self._odd[-1].id), quiescent=True)
        step = self._step()
        for name in self._unclosed:
            if name in self._waiting:
                raise self._reads_on(self._waiting[name], self._open[name])
        if step is None:
            raise self._nothing_left(timer)
        if step.kind in ("outcome", "chunk"):
            return self._deliver_awaited(step)
        if step.kind == "timer":
            self._check_timer(step, timer)
            return self._passed(step, Arrival.of_record("timer", vt=step.vt))
        if step.kind in ("cancel", "turn"):
            return self._passed(step, Arrival.of_record(step.kind, vt=step.vt))
        raise self._not_done(step)

    def _deliver_awaited(self, step: Step) -> Arrival:
        recorded = cast(RecordedCall, step.call)
        call = self._waiting.pop(recorded.id, None)
        if call is None:
            what = f"chunk {step.item + 1}" if step.kind == "chunk" else "its outcome"
            message = f"Now nobody waits for {what}, which was delivered here when recorded."
            raise self._failed(Finding("missing", self._ref(recorded), message, reason="not awaited"))
        return self._hand_over(step, call)

    def _hand_over(self, step: Step, call: Call) -> Arrival:
        recorded = cast(RecordedCall, step.call)
        if step.kind == "chunk":
            tree = self._payload(lambda: self.recording.chunk(step))
            arrival = Arrival.of_record("chunk", call, tree=tree, vt=step.vt, offset=step.offset)
        else:
            try:
                tree, plain = self.recording.result(recorded)
            except LoomError as error:
                raise self._unreadable(error) from error
            arrival = Arrival.of_record(
                "outcome", call, recorded.status or "ok", tree=tree, plain=plain, vt=step.vt, usage=recorded.usage,
                dur=recorded.dur,
            )  # fmt: skip
        return self._passed(step, arrival)

    def _passed(self, step: Step, arrival: Arrival) -> Arrival:
        self._at += 1
        self._vt = max(self._vt, step.vt)
        return arrival

    def _check_timer(self, step: Step, timer: int | None) -> None:
        if timer is not None and timer <= step.vt + self._slack:
            return
        due = f"{step.vt / _SECOND:.3f} s"
        if timer is None:
            message = f"A timer fired here after {due} when recorded; now nothing waits for one."
            raise self._failed(Finding("missing", None, message, reason="timer"))
        message = f"A timer fired here after {due} when recorded; now the first one is due at {timer / _SECOND:.3f} s."
        raise self._failed(Finding("changed", None, message, reason="timer"))

    def interrupt(self) -> bool:
        return False  # the replay is given up; a cancellation would be the recorded one

    # -- what the agent ends itself ------------------------------------------------------------------------------

    def cancel(self, call: Call, status: Status) -> None:
        """A call that the agent cancelled or left must have been ended so, at the same point, when recorded."""
        self._waiting.pop(call.id, None)
        if self.finding is not None or self.unusable is not None or self._odd:
            return  # a mismatch is being judged; its clean-up is not compared
        recorded = self._open[call.id]
        step = self._left_step(recorded, anywhere=status == "closed")
        if step is not None and recorded.status == status and recorded.chunks == call.chunks:
            step.used = True
            return
        if step is None and self._cut_short and recorded.status is None:
            return  # the run died first
        word = "left early" if status == "closed" else "cancelled"
        after = f" after {call.chunks:,} of {recorded.chunks:,} chunks" if recorded.chunks else ""
        message = f"Now {word}{after}; when recorded it {fate(recorded)}."
        raise self._failed(
            Finding("changed", ref_now(call, recorded, recorded.index), message, reason="ended by the agent")
        )

    def _left_step(self, recorded: RecordedCall, *, anywhere: bool) -> Step | None:
        """The recorded end of the call, before the next delivery (or anywhere later)."""
        if recorded.id in self._unclosed:
            return self._unclosed.pop(recorded.id)
        for step in self._steps[self._at :]:
            if step.kind == "left" and step.call is recorded:
                return step
            if step.d is not None and not anywhere:
                return None
        return None

    def ended(self, call: Call, status: Status, tree: Tree) -> None:
        """A child agent's own result must equal the recorded one."""
        if self.finding is not None or self.unusable is not None or self._odd:
            return
        recorded = self._open[call.id]
        step = self._left_step(recorded, anywhere=False)
        if step is None and recorded.status is None and self._cut_short and self._step() is None:
            raise self._failed(recording_ends(self.recording, call))
        if step is None:
            message = f"It ended here with status {status}; when recorded it {fate(recorded)}."
            raise self._failed(
                Finding("changed", ref_now(call, recorded, recorded.index), message, reason="child")
            )
        step.used = True
        then = self._payload(lambda: self.recording.outcome(recorded))
        tree, same = self._beside(then, tree)
        if recorded.status != status or not same:
            comparison = compare(then, tree, ordered=True, root="result")
            message = (
                "" if recorded.status == status else f"Status {recorded.status} when recorded, {status} now."
            )
            ref = ref_now(call, recorded, recorded.index)
            raise self._failed(Finding("output", ref, message, comparison, reason="child"))

    def state(self, entry: StateEntry) -> None:
        """A deterministic step's result must equal the recorded one."""
        self._guard()
        if self._odd:
            raise self._judged(quiescent=False)
        step = self._step()
        if step is None and self._cut_short:
            raise self._failed(recording_ends(self.recording, None))
        ref = CallRef(entry.call, "state", entry.name, None, entry.src)
        if step is None or step.kind != "state" or step.fields is None:
            message = f"State {entry.name} is set here; when recorded {happened(step)}."
            raise self._failed(Finding("extra", ref, message, reason="state"))
        fields = step.fields
        ref = CallRef(entry.call, "state", entry.name, None, entry.src, str(fields.get("src", "")))
        if fields.get("call") != entry.call or fields.get("name") != entry.name:
            message = f"State {entry.name} is set here; when recorded it was {fields.get('name')}."
            raise self._failed(Finding("changed", ref, message, reason="state"))
        if fields.get("goto") != entry.goto:
            raise self._failed(goto_finding(ref, cast("str | None", fields.get("goto")), entry.goto))
        if not (self._keyed and fields.get("key") == entry.key):
            then = self._payload(
                lambda: self.recording.tree(cast(str, step.payload), f"the state {entry.name}")
            )
            now = self._as_written(then, entry.made)
            if not same_tree(then, now, ordered=True):
                comparison = compare(then, now, ordered=True, root=entry.name)
                raise self._failed(Finding("changed", ref, "", comparison, reason="state"))
        self._at += 1

    # -- the end -------------------------------------------------------------------------------------------------

    def finished(self, status: str, tree: Tree) -> None:
        """The agent ended: nothing recorded may be left, and its output must be equal, order of mappings included."""
        self._guard()
        if self._odd:
            raise self._judged(quiescent=True)
        step = self._step()
        if step is not None:
            raise self._failed(agent_ends(self.recording, self._steps[self._at :], step, status, tree))
        end = self.recording.end
        if end is None:
            raise self._failed(recording_ends(self.recording, None))
        if end["status"] == "cancelled" != status:
            raise self._failed(recording_ends(self.recording, None))
        then = self._payload(self.recording.output)
        tree, same = self._beside(then, tree)
        if status != end["status"]:
            message = f"The run was {end['status']} when recorded; now it is {status}."
            raise self._failed(Finding("output", None, message, self._outputs(then, tree), reason="status"))
        if not same:
            raise self._failed(Finding("output", None, "", self._outputs(then, tree), reason="value"))
        self.complete = True

    @staticmethod
    def _outputs(then: Tree, now: Tree) -> Comparison:
        return compare(then, now, ordered=True, root="output")

    def goes_on(self) -> bool:
        step = self._step()
        return step is None or step.kind != "cancel"

    def rests(self, timer: int | None) -> None:
        pass

    def never_made(self, call_id: str) -> bool:
        return call_id not in self.recording.by_id

    def turn_due(self, vt: int) -> bool:
        return False

    def turn(self, timer: int | None) -> Arrival | None:
        self._guard()
        step = None if self._odd else self._step()
        if step is None or step.kind != "turn":
            return None
        return self._passed(step, Arrival.of_record("turn", vt=step.vt))

    def now(self) -> int:
        return self._vt

    # -- time that goes by without an event ----------------------------------------------------------------------

    def tick(self, shown: int, reads: int) -> int | None:
        if self.finding is not None or self._odd:
            return self._real.astray(shown)
        ticks = self.recording.ticks
        if self._tick < len(ticks) and ticks[self._tick].before > self._at:
            self._step()  # passes what was used already
        while self._tick < len(ticks):
            tick = ticks[self._tick]
            if tick.before >= self._at:
                if tick.before == self._at and reads >= tick.reads:
                    return tick.vt
                break
            if tick.vt > shown:
                return tick.vt  # the code reads less often, and has gone past it
            self._tick += 1
        if ticks and not reads & 3 and self._real.lost_patience((self._at, self._tick), shown):
            self._lose_patience()
        return None

    def ticked(self, vt: int) -> None:
        self._slack = max(self._slack, vt - self._vt)
        self._vt = max(self._vt, vt)
        if self._real.strayed is None:
            self._tick += 1

    def _lose_patience(self) -> None:
        """The program was changed to wait longer for its clock: it gets its verdict, and its time goes by."""
        step = self._step()
        then = "the run had ended" if step is None else f"{happened(step)} came next"
        message = f"The code waits here for its clock to go on, longer than when recorded: then {then}."
        self._failed(Finding("extra", None, message, reason="clock"))

    def close(self) -> None:
        self._waiting.clear()

    # -- words ---------------------------------------------------------------------------------------------------

    def _step(self) -> Step | None:
        """The next step that was not consumed yet. A stream that was left early may be closed later than then."""
        steps = self._steps
        while self._at < len(steps):
            step = steps[self._at]
            if not step.used:
                if step.kind != "left" or step.call is None or step.call.status != "closed":
                    return step
                self._unclosed[step.call.id] = step
            self._at += 1
        return None

    def _payload(self, read: Callable[[], T]) -> T:
        """Read a payload. What the trace cannot give (erased, an unknown profile) ends the replay with that error."""
        try:
            return read()
        except LoomError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: LoomError) -> Diverged:
        self.unusable = error
        return Diverged(str(error))

    def _ref(self, recorded: RecordedCall) -> CallRef:
        return recorded_ref(self.recording, recorded)

    def _reads_on(self, call: Call, recorded: RecordedCall) -> Diverged:
        message = (
            f"Chunk {call.chunks + 1:,} of the stream is asked for; when recorded the agent"
            f" left it after {recorded.chunks:,}, so it is not in the trace."
        )
        ref = ref_now(call, recorded, recorded.index)
        return self._failed(Finding("extra", ref, message, reason="reads further"))

    def _not_done(self, step: Step) -> Diverged:
        """The agent is quiescent, but when recorded it did something more before the next delivery."""
        if step.kind == "request":
            return self._failed(Judge(self.recording, self._at, [], quiescent=True).finding())
        if step.kind == "state":
            name = str((step.fields or {}).get("name"))
            message = f"State {name} was set here when recorded; now it is not."
            ref = CallRef(str((step.fields or {}).get("call")), "state", name)
            return self._failed(Finding("missing", ref, message, reason="state"))
        recorded = cast(RecordedCall, step.call)
        waiting = self._waiting.get(recorded.id)
        if waiting is not None and recorded.status == "cancelled" and waiting.spec.stream:
            return self._reads_on(waiting, recorded)
        message = f"When recorded it {fate(recorded).replace(' later', '')} here; now it is still waited for."
        return self._failed(Finding("changed", self._ref(recorded), message, reason="ended by the agent"))

    @property
    def exhausted(self) -> bool:
        """Whether everything that was recorded has happened again, and nothing else."""
        return self.finding is None and self.unusable is None and not self._odd and self._step() is None

    @property
    def ticking(self) -> bool:
        """Whether a tick is left that was recorded."""
        return self._tick < len(self.recording.ticks)

    def recorded(self, call: Call) -> RecordedCall | None:
        """The recorded call that ``call`` was matched with."""
        return self._open.get(call.id)

    def waits_for(self, call: Call) -> bool:
        """Whether the agent waits for ``call``, or for a part of it."""
        return call.id in self._waiting

    def left_before(self, call: Call) -> bool:
        """Whether the agent left the stream of ``call`` when recorded, and has not come as far yet."""
        return call.id in self._unclosed

    def _left_waiting(self, call: Call) -> bool:
        """Whether the trace ends while ``call`` waits for what no process does."""
        recorded = self._open.get(call.id)
        return self.recording.end is None and recorded is not None and recorded.ask is not None

    def _nothing_left(self, timer: int | None) -> ControlFlow:
        if any(self._left_waiting(call) for call in self._waiting.values()):
            self.complete = self.waits = True
            return Suspend()
        waiting = next(iter(self._waiting.values()), None)
        if self._cut_short:
            return self._failed(recording_ends(self.recording, waiting))
        if waiting is not None:
            recorded = self._open.get(waiting.id)
            ref = ref_now(waiting, recorded, recorded.index if recorded else None)
            return self._failed(Finding("extra", ref, _ENDED_BEFORE, reason="past the end"))
        due = "" if timer is None else f" (a timer due at {timer / _SECOND:.3f} s)"
        message = f"The agent still waits{due}; when recorded the run had ended here."
        return self._failed(Finding("extra", None, message, reason="past the end"))

    @property
    def _cut_short(self) -> bool:
        """Whether the recorded run came to its end by no doing of the program: killed, or interrupted from outside."""
        end = self.recording.end
        return end is None or end["status"] == "cancelled"


def _nobody() -> None:
    """There is nobody to ask."""
