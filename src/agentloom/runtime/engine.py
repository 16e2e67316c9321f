"""The engine: the state machine of one run, without I/O.

Requests and arrivals go in; entries (through the ledger) and deliveries come out. It numbers deliveries, keeps
virtual time, encodes what came from the world and hands the agent what was decoded from that. It keeps the verdict,
so that nothing an agent catches can turn a failed run into a good one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import NoReturn, Protocol

import orjson

from agentloom.errors import (
    ControlFlow,
    NotSupported,
    Stopped,
    StoreFailed,
    UnrecordedEffect,
    ValueRefused,
)
from agentloom.format.blobs import Suspect
from agentloom.format.captures import Captures, Grown
from agentloom.format.keys import Keys
from agentloom.format.values import Tree, Types, decode, encode, encode_apart
from agentloom.runtime.calls import Arrival, Call, CallSpec, Kept, Status
from agentloom.runtime.changes import in_effect
from agentloom.runtime.ledger import Ledger
from agentloom.runtime.outside import Outside
from agentloom.runtime.places import Places
from agentloom.runtime.profiles import Profile, all_key, get, parts_of, split
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.scope import Scope
from agentloom.runtime.source import OutcomeSource

__all__ = ["Delivery", "Engine", "State", "Unrecorded"]


_OF_CALLS = frozenset(("outcome", "chunk"))
_OURS = 3
"""Frames above a look for a place that are agentloom's own: ``Engine.place``, who asks it, and who asked that."""


@dataclass(slots=True)
class Delivery:
    """What the agent gets: a value, an exception, one chunk, or the end of a stream (``done``)."""

    call: Call | None
    kind: str
    value: object = None
    error: BaseException | None = None
    done: bool = True

    def unwrap(self) -> object:
        """The value, or the exception raised."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(slots=True)
class State:
    """A deterministic result that really ran (see ``StateEntry``)."""

    call: str
    name: str
    key: str
    tree: Tree
    reads: tuple[str, ...]
    src: str
    goto: str | None = None
    others: tuple[str, ...] = ()
    made: Tree = None


class Unrecorded(Protocol):
    """What a run did that is in no entry of its own, to be written before its end: kind, value and code of marks."""

    def marks(self) -> Iterator[tuple[str, object, str | None]]: ...


class Engine:
    """One run. ``nonce`` keys the requests; ``types`` are the user types that the program declared."""

    def __init__(
        self,
        ledger: Ledger,
        source: OutcomeSource,
        *,
        nonce: bytes,
        types: Types,
        places: Places,
        redactor: Redactor | None = None,
    ) -> None:
        """``redactor``: what keeps secrets from being written, and on replay makes a request what was written of it."""
        self.ledger = ledger
        self.source = source
        self.redactor = redactor
        self.places = places
        self.types = types
        self.vt = 0
        self.deliveries = 0
        self.reads = 0
        """Readings of the run's clock since the last delivery."""
        self.calls = 0
        self.suspends = False
        """Whether the run may be left where it waits for somebody: another process can go on with it."""
        self.asks: set[str] = set()
        """Ids of what calls of the run wait for, those that are void included: each is given once."""
        self.asked: Collection[str] = ()
        """Those in the trace that this process goes on with."""
        self.failure: BaseException | None = None
        self.unrecorded: Unrecorded | None = None
        self._torn = False  # in the middle of moving counters and chain
        self._captures = Captures(types)
        self._keys = Keys(nonce)
        self.thread: int | None = None
        """The thread in which the run goes on."""
        self._ended = False

    # -- what the agent asks for ---------------------------------------------------------------------------------

    def begin(self, spec: CallSpec, scope: Scope, *, waits: bool = False) -> Call:
        """Write the request of a host call and tell the source. Raises ``ValueRefused`` before anything is written.

        ``waits``: the code that makes the call stays where it is until it has the outcome. Then the place is looked for
        when it is asked for, which a replay does only where something differs.
        """
        self.guard()
        rule = in_effect(spec.profile, spec.change)
        if self.source.recorded_rule is not None:
            rule = self.source.recorded_rule(scope.peek, spec, rule)
        if all_key(rule, spec.request):
            tree, grown = self._capture(spec.request, spec)
            key_tree, compared = tree, grown
            noted: dict[str, Tree] = {}
        else:
            tree, grown, key_tree, noted, compared = self._sorted(rule, spec)
        call_id = scope.next_call()
        key = self._keys.key(rule.name, spec.type, spec.name, key_tree, compared)
        call = Call(
            spec,
            call_id,
            scope.path,
            self.calls + 1,
            spec.src or (partial(self.place, scope) if waits else self.place(scope)),
            key,
            tree,
            key_tree,
            noted,
            grown,
        )
        if scope.parent is not None:
            call.parent = scope.parent
        if "~" in call_id:
            call.attempt = int(call_id.rpartition("~")[2])
        if rule.rule is not None:
            call.rule = rule
        redactor = self.redactor
        if redactor is not None and (
            (spec.name not in redactor.clear and redactor.name(spec.name) is not spec.name)
            or (grown and redactor.needs(grown))
        ):
            self.redact(call)
        self._torn = True
        self.calls += 1
        try:
            try:
                self.ledger.request(call)
            except Suspect:
                self.redact(call)
                self.ledger.request(call)
            self.source.begin(call)
            for history in grown.values():
                history.settle()
            if spec.outside is not None and self.suspends:
                self.suspend(call, spec.outside)
        except (ControlFlow, StoreFailed) as failure:
            self.fail(failure)
        self._torn = False
        return call

    def suspend(self, call: Call, outside: Outside) -> None:
        """Write that a call waits for what no process does."""
        number = 1
        ask = str(call.index)
        while ask in self.asks:
            number += 1
            ask = f"{call.index}.{number}"
        self.asks.add(ask)
        call.ask = ask
        self.ledger.suspend(call, ask, outside)

    def put_down(self, write: Callable[[], None]) -> None:
        """Have ``write`` write entries at a time of its own: a run that goes on in another process."""
        torn, self._torn = self._torn, True
        try:
            write()
        except StoreFailed as failure:
            self.fail(failure)
        self._torn = torn

    def redact(self, call: Call) -> bool:
        """Make what is written of a request, with placeholders for the secrets in it, and the key of that. Whether it
        is another one than the request as made. Once it was looked at, it is written as it is then."""
        redactor = self.redactor
        if redactor is None:
            return False
        spec, rule = call.spec, call.rule or get(call.spec.profile)
        redactor.place = f"call {call.index}"
        name = redactor.name(spec.name)
        tree, grown = redactor.request(call.tree, call.grown)
        call.kept = Kept(name, tree, grown)
        if name is spec.name and tree is call.tree:
            return False
        if rule.whole:
            noted = {field: tree[field] for field in call.noted if field in tree}
            key_tree = (
                {field: value for field, value in tree.items() if field not in noted} if noted else tree
            )
            compared = {field: one for field, one in grown.items() if field in key_tree}
        else:
            key_tree, noted = parts_of(rule, tree, "key"), parts_of(rule, tree, "noted")
            compared = {field: one for field, one in grown.items() if key_tree.get(field) is one.items}
        call.key_tree, call.noted = key_tree, noted
        call.key = self._keys.key(rule.name, spec.type, name, key_tree, compared)
        return True

    def _sorted(
        self, rule: Profile, spec: CallSpec
    ) -> tuple[dict[str, Tree], dict[str, Grown], dict[str, Tree], dict[str, Tree], dict[str, Grown]]:
        """The tree of a request whose fields are of several roles, its histories; then its load-bearing and its noted
        fields, and those histories that are load-bearing as they are."""
        parts = split(rule, spec.request)
        if parts.secret_paths and self.redactor is not None:
            self.redactor.learn_request(rule, spec.request)
        tree, grown = self._capture(parts.written(spec.request), spec)
        if rule.whole:
            noted = {name: tree[name] for name in parts.noted}
            key_tree = {name: tree[name] for name in parts.key} if noted else tree
            return tree, grown, key_tree, noted, grown
        for one in grown.values():
            one.check()
        key_tree, noted = parts_of(rule, tree, "key"), parts_of(rule, tree, "noted")
        compared = {name: one for name, one in grown.items() if key_tree.get(name) is one.items}
        return tree, grown, key_tree, noted, compared

    def state(
        self,
        scope: Scope,
        name: str,
        value: object,
        reads: tuple[str, ...],
        src: str | None = None,
        *,
        goto: str | None = None,
        others: tuple[str, ...] = (),
    ) -> object:
        """Keep (or, on replay, compare) the result of a deterministic step that really ran; returns it decoded.

        ``goto`` is what it chose to go on with and is compared too; ``others`` what it could have chosen instead.
        """
        self.guard()
        tree = encode(value, self.types)
        written = tree if self.redactor is None else self.redactor.clean(tree)
        entry = State(
            call=scope.next_call(),
            name=name,
            key=self._keys.key("state/1", "state", name, {"value": written}, {}),
            tree=written,
            reads=reads,
            src=src or self.place(scope),
            goto=goto,
            others=others,
            made=tree,
        )
        self._torn = True
        try:
            self.ledger.state(entry)
            self.source.state(entry)
        except (ControlFlow, StoreFailed) as failure:
            self.fail(failure)
        self._torn = False
        return decode(tree, self.types)

    def mark(self, kind: str, value: object, *, call: str | None = None, why: str | None = None) -> None:
        """Write a note, flag, tag or gap."""
        self.guard()
        tree = encode(value, self.types)
        self._torn = True
        try:
            self.ledger.mark(kind, tree, call=call, why=why)
        except StoreFailed as failure:
            self.fail(failure)
        self._torn = False

    # -- what the world answers ----------------------------------------------------------------------------------

    def deliver(self, arrival: Arrival) -> Delivery:
        """Write one event and turn it into what the agent gets. Stops where a failure is kept."""
        self.guard()
        if arrival.vt > self.vt:  # noqa: PLR1730 - without a call: this is done for every event
            self.vt = arrival.vt
        self._torn = True
        self.deliveries += 1
        self.reads = 0
        try:
            if arrival.kind in _OF_CALLS:
                return self._deliver_call(arrival)
            self.ledger.event(arrival.kind, self.deliveries, self.vt)
            self._torn = False
            return Delivery(None, arrival.kind)
        except StoreFailed as failure:
            self.fail(failure)

    def tick(self, vt: int) -> None:
        """Write that time went by without an event, to ``vt``, as the last reading of the run's clock found. That is a
        delivery too; nobody waits for it."""
        self.guard()
        reads, self.reads = self.reads, 0
        self.vt = max(self.vt, vt)
        self._torn = True
        self.deliveries = d = self.deliveries + 1
        try:
            self.ledger.event("tick", d, self.vt, reads)
        except StoreFailed as failure:
            self.fail(failure)
        self.source.ticked(self.vt)
        self._torn = False

    def _deliver_call(self, arrival: Arrival) -> Delivery:
        call = arrival.call
        if call is None or call.ended:
            raise RuntimeError(f"an arrival for a call that is not open: {arrival!r}")
        status, tree = self._tree_of(arrival)
        if arrival.kind == "chunk" and status == "ok":
            self.ledger.chunk(call, tree, d=self.deliveries, vt=self.vt, offset=arrival.offset)
            call.chunks += 1
            if not arrival.recorded:
                call.usage = _usage_of(call, tree) or call.usage  # a stream counts in one of its chunks
            self._torn = False
            # The tree is kept until it is written: the agent gets a copy, from its JSON where that is at hand.
            text = arrival.text if arrival.plain else None
            value = decode(tree, self.types) if text is None else orjson.loads(text)
            return Delivery(call, "chunk", value, done=False)
        call.ended = True
        usage = arrival.usage
        if not usage and not arrival.recorded and call.spec.type == "model":
            usage = _usage_of(call, tree) or call.usage
        if arrival.mail is not None:
            self.ledger.said(call, arrival.mail)
        self.ledger.outcome(
            call, status, tree, d=self.deliveries, vt=self.vt, usage=usage, dur=arrival.dur, text=arrival.text
        )
        self._torn = False
        if status == "error":
            error = decode(tree, self.types)
            if not isinstance(error, BaseException):
                raise RuntimeError(f"the recorded error of {call.id} is not an exception: {error!r}")
            return Delivery(call, "outcome", error=error)
        # A plain tree is written by now and nobody else's: it is what decoding it would give.
        return Delivery(call, "outcome", tree if arrival.plain else decode(tree, self.types))

    def _tree_of(self, arrival: Arrival) -> tuple[Status, Tree]:
        """The arrival's status and encoded payload. What cannot be kept exactly becomes an error of the call."""
        if arrival.recorded:
            return arrival.status, arrival.tree
        if arrival.error is not None:
            return "error", encode(arrival.error, self.types)
        try:
            tree, arrival.plain, arrival.text = encode_apart(arrival.value, self.types)
            return arrival.status, tree
        except ValueRefused as refused:
            return "error", encode(refused, self.types)

    # -- what the agent ends itself ------------------------------------------------------------------------------

    def end_by_agent(self, call: Call, status: Status, value: object = None) -> object:
        """The agent ended a call: cancelled it, left its stream, or (a child agent) performed it itself."""
        if call.ended:
            return None
        if self.failure is not None or self._ended:
            call.ended = True  # clean-up after the end, or after a verdict: nothing of it is written
            return None
        self.guard()
        call.ended = True
        try:
            tree = encode(value, self.types)
        except ValueRefused as refused:
            call.ended = False
            self.end_by_agent(call, "error", refused)
            raise
        self._torn = True
        try:
            self.ledger.outcome(call, status, tree, d=None, vt=self.vt, usage=None, dur=None)
            if status in ("cancelled", "closed"):
                self.source.cancel(call, status)
            else:
                self.source.ended(call, status, tree)
        except (ControlFlow, StoreFailed) as failure:
            self.fail(failure)
        self._torn = False
        return decode(tree, self.types)

    def finish(self, status: str, value: object) -> object:
        """The agent ended: write the end entry, let the source compare the output, return it decoded.

        Raises the kept failure (``Diverged``, ``StoreFailed``) whatever the agent returned. Called by whoever started
        the run, in a thread of its choice.
        """
        try:
            return self._finish(status, value)
        except Stopped:
            self.judge()
            raise

    def _finish(self, status: str, value: object) -> object:
        self.take()
        self.guard()
        tree = encode(value, self.types)
        if self.unrecorded is not None:
            for kind, what, why in self.unrecorded.marks():
                self.mark(kind, what, why=why)
        self._torn = True
        try:
            self._ended = True
            self.ledger.end(status, tree, {"calls": self.calls, "deliveries": self.deliveries})
            self.source.finished(status, tree)
        except (ControlFlow, StoreFailed) as failure:
            self.fail(failure)
        self._torn = False
        return decode(tree, self.types)

    def check_lent(self) -> None:
        """Raise ``NotSupported`` where the model backend changed what it was lent to read: what it sent is not what
        was written."""
        self._captures.check()

    def release(self) -> None:
        """Nothing more will be asked: let go of the histories at once. The engine itself is part of cycles, and would
        keep them until the collector comes by."""
        self._captures = Captures(self.types)

    # -- the verdict ---------------------------------------------------------------------------------------------

    def guard(self) -> None:
        """Stop the agent's code where a failure is kept: after it no host call of this run does anything. Raises
        ``NotSupported`` after the end, and in a thread that is not the run's: what it does has no place in the
        recorded order.
        """
        if self._torn or self.failure is not None:
            self.stop()
        if self._ended:
            raise NotSupported(
                "a host call was made after the run had ended",
                hint="await what the agent starts before it returns",
            )
        if self.thread is not None and self.thread != get_ident():
            raise NotSupported(
                "a host call was made in a thread that carries the run's context but has no place in its order",
                hint="start it with agentloom.sync.parallel(...), or in async code with asyncio.to_thread or gather",
            )

    def take(self) -> None:
        """From now on the run goes on in the calling thread, and in no other."""
        self.thread = get_ident()

    def give_back(self, thread: int | None = None) -> None:
        """From now on the run goes on in ``thread`` again, or in none: then whoever makes a host call sees to it that
        nobody else does."""
        self.thread = thread

    def fail(self, failure: BaseException) -> NoReturn:
        """Keep the first failure and stop the agent's code."""
        if self.failure is None:
            self.failure = failure
        _stop(failure)

    def stop(self) -> None:
        """Stop the agent's code with the kept failure, if there is one."""
        if self._torn or self.failure is not None:
            self._notice_tear()
            if self.failure is not None:
                _stop(self.failure)

    def judge(self) -> None:
        """Raise the kept failure itself, if there is one: for whoever started the run.

        A run that its guard stopped has ended, and failed: that is written first, and on replay compared.
        """
        self._notice_tear()
        if self.failure is None:
            return
        if isinstance(self.failure, UnrecordedEffect) and not self._ended:
            failure, self.failure = self.failure, None
            try:
                self._finish("failed", failure)
            finally:
                if self.failure is None:
                    self.failure = failure
        raise self.failure

    def _notice_tear(self) -> None:
        """An exception that did not come from here (raised by a signal handler, a full stack) and cut the engine off
        in the middle is a failure too: what would be written now would not fit what was."""
        if self._torn and self.failure is None:
            self.failure = StoreFailed(
                "the run was cut off in the middle of writing an entry; it ends there, and nothing more is recorded",
                hint="what was written before holds; look at what interrupted it (a signal handler that raises?)",
            )

    @property
    def over(self) -> bool:
        """Whether nothing more is written: the run has ended, or failed."""
        return self._ended or self.failure is not None

    @property
    def ended(self) -> bool:
        """Whether the run has come to its end as its code had it: what goes on is no part of it."""
        return self._ended and self.failure is None

    @property
    def writing(self) -> bool:
        """Whether an entry is being written: what a store does meanwhile is not the agent's doing."""
        return self._torn and self.failure is None

    def place(self, scope: Scope) -> str:
        """Where the agent's code is that runs now; that of ``scope`` where none of it is on the stack."""
        src = self.places.caller(_OURS)
        return scope.src if src == "?" else src

    def _capture(
        self, fields: Mapping[str, object], spec: CallSpec
    ) -> tuple[dict[str, Tree], dict[str, Grown]]:
        try:
            return self._captures.capture(fields, spec.series)
        except ValueRefused as refused:
            raise ValueRefused(
                refused.path, refused.type_name, f"{refused.reason} (argument of {spec.type} {spec.name})"
            ) from None


def _stop(failure: BaseException) -> NoReturn:
    """Raise ``failure`` in a form that the agent's ``except Exception`` does not catch: a loop around it that goes on
    after any error would never end on a full disk."""
    if isinstance(failure, Exception):
        raise Stopped(f"the run stops here: {failure}") from failure
    raise failure


def _usage_of(call: Call, tree: Tree) -> dict[str, Tree] | None:
    """The token counts of a model's answer, for the outcome entry: integers only, nothing guessed."""
    if call.type != "model" or not isinstance(tree, dict):
        return None
    usage = tree.get("usage")
    if not isinstance(usage, dict):
        return None
    return {name: count for name, count in usage.items() if type(count) is int} or None
