"""From calls that do not fit the recording to one finding: changed, extra, missing or reordered.

An awaited mismatch is judged once the agent is quiescent: all requests that it made since the last delivery (the
window) are compared with those recorded there, so that a permutation is one finding. A blocking call is judged at
once, with a look ahead in the recorded order. ``docs/report-json.md`` lists the reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from agentloom.format.values import Tree
from agentloom.replay.cause import parse_src
from agentloom.replay.fields import Comparison, Difference, compare
from agentloom.replay.recording import RecordedCall, Recording
from agentloom.replay.report import CallRef, Finding
from agentloom.replay.summaries import recorded_ref, ref_now, request_words
from agentloom.runtime.calls import Call
from agentloom.runtime.minted import align_ids
from agentloom.runtime.profiles import parts_of

__all__ = ["Judge", "goto_finding", "identity", "identity_recorded", "request_differences"]

_LOOK_AHEAD = 64
_TIMES = ("never", "once", "twice")


@dataclass(slots=True)
class Judge:
    """Judges the calls in ``odd`` (in the order made), the first of which did not fit step ``at``.

    ``quiescent``: the agent waits, so its window is complete; ``odd`` may be empty where a request was not made.
    """

    recording: Recording
    at: int
    odd: Sequence[Call]
    quiescent: bool

    def finding(self) -> Finding:
        """One finding for the whole window."""
        window, later = self._expected()
        ids_now = [identity(self.recording, call) for call in self.odd]
        ids_then = [identity_recorded(self.recording, call) for call in window]
        if self._same_members(ids_now, ids_then):
            return self._reordered(window, ids_now, ids_then)
        if window and self.quiescent:
            if len(window) == len(self.odd) == 1:  # calls awaited one after the other: as blocking ones
                skipped = self._found_ahead(self.odd[0], ids_now[0], later)
                if skipped is not None:
                    return self.missing(window[0], skipped + 1)
            return self._in_window(window, ids_now, ids_then)
        call = self.odd[0]
        if not window:
            return self._beyond(call, ids_now[0], later)
        first = window[0]
        ahead = [*window[1:], *later]
        skipped = self._found_ahead(call, ids_now[0], ahead)
        if skipped is not None:
            return self.missing(first, skipped + 1)
        return self._changed_or_extra(call, ids_now[0], first)

    def reordered(self, window: list[RecordedCall]) -> Finding:
        """The finding for ``odd`` made in another order than ``window``; the same requests are in both."""
        ids_now = [identity(self.recording, call) for call in self.odd]
        return self._reordered(window, ids_now, [identity_recorded(self.recording, call) for call in window])

    def missing(self, first: RecordedCall, count: int) -> Finding:
        """The finding that ``first`` and so many calls in all, recorded here, are not made."""
        words = _words(self.recording, first)
        message = f"{words} was made here when recorded; now it is not."
        if count > 1:
            message = f"{words} and {count - 1} more recorded here are not made now."
        if self.odd:
            call = self.odd[0]
            message += f" Now: {request_words(call.type, call.name, call.tree)} at {parse_src(call.src) or call.src}."
        ref = recorded_ref(self.recording, first)
        return Finding("missing", replace(ref, src=None), message, reason="skipped")

    # -- what was expected --------------------------------------------------------------------------------------

    def _expected(self) -> tuple[list[RecordedCall], list[RecordedCall]]:
        """Requests recorded from ``at`` to the next delivery, and up to 64 after it."""
        window: list[RecordedCall] = []
        later: list[RecordedCall] = []
        delivered = False
        for step in self.recording.steps[self.at :]:
            if step.d is not None:
                delivered = True
            elif step.kind == "request" and step.call is not None:
                (later if delivered else window).append(step.call)
                if len(later) >= _LOOK_AHEAD:
                    break
        return window, later

    def _same_members(self, now: list[str], then: list[str]) -> bool:
        """Whether the window holds the same requests, in another order or under other ids."""
        if self.quiescent:
            return len(now) == len(then) and Counter(now) == Counter(then)
        return len(now) > 1 and not Counter(now) - Counter(then)

    def _found_ahead(self, call: Call, ident: str, ahead: list[RecordedCall]) -> int | None:
        """How many calls lie between here and the recorded call that this one certainly is."""
        total = self._recorded_times(ident)
        for number, recorded in enumerate(ahead[:_LOOK_AHEAD]):
            if identity_recorded(self.recording, recorded) == ident and (
                total == 1 or recorded.src == call.src
            ):
                return number
        return None

    def _recorded_times(self, ident: str) -> int:
        return sum(identity_recorded(self.recording, call) == ident for call in self.recording.calls)

    def _matched_times(self, ident: str) -> int:
        return sum(
            step.kind == "request"
            and step.call is not None
            and identity_recorded(self.recording, step.call) == ident
            for step in self.recording.steps[: self.at]
        )

    # -- findings ------------------------------------------------------------------------------------------------

    def _in_window(self, window: list[RecordedCall], now: list[str], then: list[str]) -> Finding:
        """The first call in order that has no partner decides."""
        spare_now, spare_then = _unpaired(now, then), _unpaired(then, now)
        if not spare_now:
            return self.missing(window[spare_then[0]], len(spare_then))
        call = self.odd[spare_now[0]]
        if not spare_then:
            return self._extra(call, now[spare_now[0]], window[0])
        partner = next((window[n] for n in spare_then if window[n].id == call.id), window[spare_then[0]])
        if (partner.type, partner.name) != (call.type, call.name):
            alike = [
                window[n] for n in spare_then if (window[n].type, window[n].name) == (call.type, call.name)
            ]
            partner = alike[0] if alike else partner
        return self._changed_or_extra(call, now[spare_now[0]], partner)

    def _changed_or_extra(self, call: Call, ident: str, recorded: RecordedCall) -> Finding:
        if (call.type, call.name) != (recorded.type, recorded.name) and not self._renamed_model(
            call, recorded
        ):
            return self._extra(call, ident, recorded)
        times = self._recorded_times(ident)
        if times and self._matched_times(ident) == times and call.key != recorded.key:
            return self._extra(call, ident, recorded)
        comparison = request_differences(self.recording, recorded, call)
        reason = "request" if call.key != recorded.key else "path"
        return Finding("changed", ref_now(call, recorded, recorded.index), "", comparison, reason=reason)

    @staticmethod
    def _renamed_model(call: Call, recorded: RecordedCall) -> bool:
        """A model call to another model is the same call with a changed ``model`` field."""
        return call.type == recorded.type == "model"

    def _extra(self, call: Call, ident: str, recorded: RecordedCall | None) -> Finding:
        times, done = self._recorded_times(ident), self._matched_times(ident)
        words = request_words(call.type, call.name, call.tree)
        place = f" Recorded at this place: {_words(self.recording, recorded)}." if recorded else ""
        if times and done == times:
            message = (
                f"{words} is exhausted: recorded {_times(times)}, asked a {_ordinal(times + 1)} time"
                f" at call {call.index}.{place}"
            )
            return Finding("extra", ref_now(call, None, call.index), message, reason="exhausted")
        message = f"{words} is not in the recording.{place}"
        if times:
            message = f"{words} is made here; it is recorded {_times(times)}, not here.{place}"
        return Finding("extra", ref_now(call, None, call.index), message, reason="unrecorded")

    def _beyond(self, call: Call, ident: str, later: list[RecordedCall]) -> Finding:
        """Nothing more was asked here when recorded."""
        same = self.recording.by_id.get(call.id)
        matched = {step.call.id for step in self.recording.steps[: self.at] if step.call is not None}
        if same is not None and same.id not in matched:
            if identity_recorded(self.recording, same) == ident:
                message = f"Call {same.index} is made earlier: when recorded, something had to arrive first."
                ref = ref_now(call, same, same.index)
                return Finding("reordered", ref, message, last=same.index, reason="earlier")
            if not self.quiescent or len(self.odd) == 1:
                return self._changed_or_extra(call, ident, same)
        if not later:
            finding = self._extra(call, ident, None)
            if finding.reason == "exhausted":
                return finding
            end = f"The recording has {len(self.recording.calls)} calls; this is one more."
            return replace(finding, message=end, reason="past the end")
        return self._extra(call, ident, later[0])

    def _reordered(self, window: list[RecordedCall], now: list[str], then: list[str]) -> Finding:
        first, call = window[0], self.odd[0]
        if now == then[: len(now)]:
            where = next(n for n, odd in enumerate(self.odd) if odd.id != window[n].id)
            moved, recorded = self.odd[where], window[where]
            path = Difference("path", "changed", recorded.id, moved.id)
            message = "The same request is made from another place in the run's structure."
            ref = ref_now(moved, recorded, recorded.index)
            return Finding("changed", ref, message, Comparison((path,), 1), reason="path")
        last = max(n for n in range(len(now)) if now[n] != then[n])
        moved_then = [_words(self.recording, recorded) for recorded in window[: last + 1]]
        moved_now = [request_words(odd.type, odd.name, odd.tree) for odd in self.odd[: last + 1]]
        count = _number_word(last + 1)
        message = f"The same {count} calls were started in another order; no value differs."
        sequences = (tuple(moved_then), tuple(moved_now))
        ref = ref_now(call, first, first.index)
        return Finding("reordered", ref, message, None, first.index + last, sequences, reason="order")


def identity(recording: Recording, call: Call) -> str:
    """What makes a request the same request: its key, or its canonical form where the nonce was erased."""
    if recording.nonce is not None:
        return call.key
    return _canonical(call.profile, call.type, call.name, call.key_tree)


def identity_recorded(recording: Recording, call: RecordedCall) -> str:
    """As ``identity``, for a recorded request."""
    if recording.nonce is not None:
        return call.key
    tree = recording.request(call)
    fields = parts_of(recording.profile(call), tree, "key")
    return _canonical(call.profile, call.type, call.name, fields)


def request_differences(recording: Recording, recorded: RecordedCall, call: Call) -> Comparison:
    """Differences of the load-bearing fields, and of kind, name and profile where those differ."""
    tree = recording.request(recorded)
    profile = recording.profile(recorded)
    then = parts_of(profile, tree, "key")
    comparison = compare(then, align_ids(profile.minted, call.key_tree, then))
    facts = (
        ("kind", recorded.type, call.type),
        ("name", recorded.name, call.name),
        ("profile", recorded.profile, call.profile),
        ("path", recorded.id, call.id),
    )
    covered = call.type == "model"  # a model's name is its field ``model``
    more = [
        Difference(name, "changed", was, has)
        for name, was, has in facts
        if was != has and not (name == "name" and covered)
    ]
    if not more:
        return comparison
    return replace(comparison, items=(*comparison.items, *more), total=comparison.total + len(more))


def _canonical(profile: str, kind: str, name: str, fields: dict[str, Tree]) -> str:
    return f"{profile} {kind} {name} " + orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()


def _unpaired(these: list[str], those: list[str]) -> list[int]:
    """Positions in ``these`` without a partner in ``those``, each partner used once."""
    left = Counter(those)
    out: list[int] = []
    for position, ident in enumerate(these):
        if left[ident]:
            left[ident] -= 1
        else:
            out.append(position)
    return out


def _words(recording: Recording, call: RecordedCall) -> str:
    return recorded_ref(recording, call).summary or f"{call.type} {call.name}"


def _times(count: int) -> str:
    return _TIMES[count] if count < len(_TIMES) else f"{count:,} times"


def _ordinal(count: int) -> str:
    words = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
    if count in words:
        return words[count]
    ending = "th" if 10 <= count % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count:,}{ending}"


def _number_word(count: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else f"{count:,}"


def goto_finding(ref: CallRef, then: str | None, now: str | None) -> Finding:
    """The finding that the step ``ref`` went on with ``then`` when recorded (None: it chose nothing) and now with
    another."""

    def words(goto: str | None, went: str) -> str:
        return f"{went} on without a choice" if goto is None else f"{went} to {goto!r}"

    message = f"Step {ref.name!r} {words(now, 'goes')} now; when recorded it {words(then, 'went')}."
    return Finding(
        "changed", ref, message, compare({"goto": then}, {"goto": now}, root=ref.name), reason="goto"
    )
