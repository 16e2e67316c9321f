"""The ledger: what the engine writes down. One method for each kind of entry; the replay of a run uses ``NoLedger``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from agentloom.format.blobs import BlobWriter, Suspect
from agentloom.format.canonical import dump
from agentloom.format.captures import Grown
from agentloom.format.journal import Journal, JournalWriter
from agentloom.format.values import Tree, encode
from agentloom.runtime.ambient import looks_secret, placeholder
from agentloom.runtime.calls import Call, Status
from agentloom.runtime.outside import Outside
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_streams import Joined
from agentloom.runtime.source import StateEntry
from agentloom.store.mail import Mail

__all__ = ["Ledger", "NoLedger", "TraceLedger"]

_NOTHING_GROWN: Mapping[str, Grown] = {}
_ALIKE = 1000


class Ledger(Protocol):
    """What the engine writes down, in order. Every method may raise ``StoreFailed`` (the run then stops)."""

    def start(self, facts: Mapping[str, Tree], payloads: Mapping[str, Tree], nonce: bytes) -> None: ...
    def request(self, call: Call) -> None: ...
    def outcome(
        self,
        call: Call,
        status: Status,
        tree: Tree,
        *,
        d: int | None,
        vt: int,
        usage: Mapping[str, Tree] | None,
        dur: int | None,
        text: bytes | None = None,
    ) -> None:
        """``text`` is the JSON of ``tree``, where that is at hand."""
        ...

    def chunk(self, call: Call, tree: Tree, *, d: int, vt: int, offset: int) -> None: ...
    def event(self, kind: str, d: int, vt: int, reads: int | None = None) -> None:
        """``reads``: of a tick, at which reading of the run's clock since the delivery before."""
        ...

    def suspend(self, call: Call, ask: str, outside: Outside) -> None:
        """The call waits for what no process does; ``ask`` is the id by which it is answered."""
        ...

    def said(self, call: Call, mail: Mail) -> None:
        """What the outcome of ``call``, written next, is made of."""
        ...

    def state(self, entry: StateEntry) -> None: ...
    def mark(self, kind: str, tree: Tree, *, call: str | None, why: str | None = None) -> None: ...
    def end(self, status: str, tree: Tree, totals: Mapping[str, Tree]) -> None: ...


class TraceLedger:
    """Writes a trace: one ``append`` for each entry together with the payloads that it names.

    Chunks of streams are kept back and written before the next entry of any other kind, so that delivering them
    costs no write each; their delivery numbers keep their place in the order.
    """

    def __init__(
        self,
        append: Callable[[bytes], None],
        entropy: Callable[[int], bytes],
        clock: Callable[[], int] = time.time_ns,
        reads: dict[str, Any] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """``reads`` is filled elsewhere with the environment variables that the run reads: each entry takes what is
        there when it is written."""
        self._append = append
        self._reads = reads
        self._redactor = redactor
        self._blobs = BlobWriter(entropy, None if redactor is None else redactor.gate)
        self._journal = JournalWriter()
        self._clock = clock
        self._chunks: dict[str, tuple[Call, list[Tree], list[Tree]]] = {}
        self._streams: dict[str, Joined] = {}
        self._alike: dict[tuple[object, ...], tuple[str, str, str]] = {}  # what most requests share: its JSON

    @classmethod
    def again(
        cls,
        journal: Journal,
        append: Callable[[bytes], None],
        entropy: Callable[[int], bytes],
        *,
        reads: dict[str, Any] | None,
        redactor: Redactor | None,
    ) -> TraceLedger:
        """One that goes on behind ``journal``."""
        ledger = cls(append, entropy, reads=reads, redactor=redactor)
        ledger._blobs = BlobWriter.resume(journal, entropy)
        ledger._blobs.gate = None if redactor is None else redactor.gate
        ledger._journal = JournalWriter.resume(journal)
        return ledger

    @property
    def head(self) -> str:
        """The digest of the last entry written."""
        return self._journal.head

    @property
    def seq(self) -> int:
        """The number of the last entry written."""
        return self._journal.seq

    def start(self, facts: Mapping[str, Tree], payloads: Mapping[str, Tree], nonce: bytes) -> None:
        fields: dict[str, Tree] = dict(facts)
        for name, tree in payloads.items():
            fields[name] = self._put_first(tree, f"the {name}")
        fields["nonce"] = self._blobs.put_nonce(nonce)
        if self._redactor is not None and self._redactor.fresh:
            fields["secrets"] = self._sure(self._redactor.untold())
        # The start entry comes before its payloads, so that the first line of a file says what the file is.
        line = self._journal.entry("start", fields, at=self._clock())
        pending = self._blobs.take()
        self._journal.skip(len(pending))
        self._append(line + pending)

    def request(self, call: Call) -> None:
        if self._chunks:
            self._settle()
        spec = call.spec
        kept = call.kept
        if kept is None:
            req = self._blobs.put(call.tree, series=spec.series, grown=call.grown, encoded=True)
        else:
            req = self._sure(kept.tree, series=spec.series, grown=kept.grown)
        name = spec.name if kept is None else kept.name
        if call.rule is None and call.attempt == 1 and not self._more():
            a, b, c = self._shared(call, name)
            text = f'"call":"{call.id}",{a}"key":"{call.key}",{b}"req":"{req}",{c}'
            self._write("request", text.encode())
        else:
            fields: dict[str, Tree] = {"call": call.id, "type": spec.type, "name": name, "key": call.key}
            self._emit("request", {**fields, "profile": call.profile, "req": req, **self._rare(call)})

    def _shared(self, call: Call, name: str) -> tuple[str, str, str]:
        """What the entries of most requests made at one place share, as JSON: before, between and after the rest."""
        spec = call.spec
        same = (spec.type, name, spec.profile, call.src, call.parent, spec.effect)
        texts = self._alike.get(same)
        if texts is None:
            after: dict[str, Tree] = {"src": self._shown(call.src)}
            if call.parent is not None:
                after["parent"] = call.parent
            if spec.effect is not None:
                after["effect"] = spec.effect
            named: dict[str, Tree] = {"type": spec.type, "name": name}
            texts = (
                dump(named)[1:-1].decode() + ",",
                dump({"profile": spec.profile})[1:-1].decode() + ",",
                dump(after)[1:-1].decode(),
            )
            if len(self._alike) < _ALIKE:
                self._alike[same] = texts
        return texts

    def _rare(self, call: Call) -> dict[str, Tree]:
        """The fields after ``req``, with those that few requests have."""
        fields: dict[str, Tree] = {"src": self._shown(call.src)}
        if call.rule is not None:
            fields["rule"] = self._put(call.rule.rule, "a profile")
        if call.parent is not None:
            fields["parent"] = call.parent
        if call.spec.effect is not None:
            fields["effect"] = call.spec.effect
        if call.attempt > 1:
            fields["attempt"] = call.attempt
        return fields

    def outcome(
        self,
        call: Call,
        status: Status,
        tree: Tree,
        *,
        d: int | None,
        vt: int,
        usage: Mapping[str, Tree] | None,
        dur: int | None,
        text: bytes | None = None,
    ) -> None:
        if self._chunks:
            self._settle()
        if self._streams:
            self._streams.pop(call.id, None)
        val = ""
        if status in ("ok", "error"):
            val = self._put(tree, f"call {call.index}", encoded=True, text=text)
        if status == "ok" and d is not None and dur is not None and not usage and not self._more():
            facts = f'"call":"{call.id}","d":{d},"vt":{vt},"status":"ok","val":"{val}","dur":{dur}'
            self._write("outcome", facts.encode())
            return
        fields: dict[str, Tree] = {"call": call.id}
        if d is not None:
            fields["d"] = d
        fields["vt"] = vt
        fields["status"] = status
        if val:
            fields["err" if status == "error" else "val"] = val
        if usage:
            fields["usage"] = dict(usage)
        if dur is not None:
            fields["dur"] = dur
        self._emit("outcome", fields)

    def chunk(self, call: Call, tree: Tree, *, d: int, vt: int, offset: int) -> None:
        held = self._chunks.get(call.id)
        if held is None:
            held = self._chunks[call.id] = (call, [], [])
        held[1].append([d, vt, offset])
        held[2].append(tree)

    def event(self, kind: str, d: int, vt: int, reads: int | None = None) -> None:
        if self._chunks:
            self._settle()
        self._emit(kind, {"d": d, "vt": vt} if reads is None else {"d": d, "vt": vt, "reads": reads})

    def resume(self, epoch: int, payloads: Mapping[str, Tree]) -> None:
        """Another process goes on, the ``epoch``-th that writes the run; ``payloads``: ``code`` and ``env`` where they
        are others now."""
        fields: dict[str, Tree] = {"epoch": epoch}
        for name, tree in payloads.items():
            fields[name] = self._put(tree, f"the {name}")
        self._emit("resume", fields)

    def retract(self, seq: int) -> None:
        """Every entry from ``seq`` on is void."""
        self._emit("retract", {"from": seq})

    def suspend(self, call: Call, ask: str, outside: Outside) -> None:
        if self._chunks:
            self._settle()
        facts = encode(dict(outside.facts))
        fields: dict[str, Tree] = {"ask": ask, "call": call.id, "val": self._put(facts, f"call {call.index}")}
        if outside.due is not None:
            fields["deadline"] = outside.due
        if "default" in outside.facts:
            fields["default"] = self._put(encode(outside.facts["default"]), f"call {call.index}")
        self._emit("suspend", fields)

    def said(self, call: Call, mail: Mail) -> None:
        if self._chunks:
            self._settle()
        place = f"what was said to call {call.index}"
        fields: dict[str, Tree] = {"name": mail.name} if mail.kind == "signal" else {"ask": call.ask}
        fields["val"] = self._put(mail.value, place)
        who: dict[str, Tree] = {"at": mail.at, "via": mail.via}
        if mail.who is not None:
            who["name"] = mail.who
        fields["who"] = self._put(who, place)
        if mail.kind == "signal":
            fields["mail"] = mail.key
        self._emit(mail.kind, fields)

    def state(self, entry: StateEntry) -> None:
        if self._chunks:
            self._settle()
        fields: dict[str, Tree] = {
            "call": entry.call,
            "name": entry.name,
            "key": entry.key,
            "val": self._put(entry.tree, f"state {entry.name}"),
            "reads": list(entry.reads),
            "src": self._shown(entry.src),
        }
        if entry.goto is not None:
            fields["goto"] = entry.goto
        if entry.others:
            fields["others"] = list(entry.others)
        self._emit("state", fields)

    def mark(self, kind: str, tree: Tree, *, call: str | None, why: str | None = None) -> None:
        if self._chunks:
            self._settle()
        fields: dict[str, Tree] = {}
        if call is not None:
            fields["call"] = call
        if why is not None:
            fields["why"] = why
        if tree is not None:
            fields["val"] = self._put(tree, f"the {kind} entry")
        self._emit(kind, fields)

    def end(self, status: str, tree: Tree, totals: Mapping[str, Tree]) -> None:
        if self._chunks:
            self._settle()
        name = "err" if status == "failed" else "val"
        self._emit("end", {"status": status, name: self._put(tree, "the output"), "totals": dict(totals)})

    def release(self) -> None:
        """Nothing more will be written: let go of what was said before at once (see ``Engine.release``)."""
        self._blobs.release()

    def _settle(self) -> None:
        """Write the chunks that were kept back. Before anything of the next entry is put: each payload stands right
        before the first entry that names it."""
        held, self._chunks = self._chunks, {}
        for call, items, values in held.values():
            val = self._put_chunks(call, values)
            self._emit("chunks", {"call": call.id, "items": items, "val": val})

    def _put_chunks(self, call: Call, values: list[Tree]) -> str:
        """The blob of chunks of a stream. Looked at closely at once: texts in pieces are suspect to the gate."""
        redactor = self._redactor
        if redactor is None or (call.ended and len(values) == 1 and call.id not in self._streams):
            # Nothing of it goes on in another chunk: a payload as any other.
            return self._put(values, f"call {call.index}", encoded=True)
        redactor.place = f"call {call.index}"
        return self._sure(redactor.tree(self._joined(call).redacted(values, final=call.ended)))

    def _joined(self, call: Call) -> Joined:
        """What the stream of a call said so far, as far as a secret may have begun in it."""
        found = self._streams.get(call.id)
        if found is None:
            found = self._streams[call.id] = Joined(cast(Redactor, self._redactor))
        return found

    # -- secrets -------------------------------------------------------------------------------------------------

    def _put(self, tree: Tree, place: str, *, encoded: bool = False, text: bytes | None = None) -> str:
        """The blob of a payload that is no request, with placeholders for the secrets in it. ``place`` says in reports
        what it is."""
        try:
            return self._blobs.put(tree, encoded=encoded, text=text)
        except Suspect:
            redactor = cast(Redactor, self._redactor)
            redactor.place = place
            return self._sure(redactor.tree(tree))

    def _put_first(self, tree: Tree, place: str) -> str:
        """As ``_put``, of a payload of the start entry, where other runs of the process may have the same."""
        divisions = None if self._redactor is None else self._redactor.divisions()
        if divisions is None:
            return self._put(tree, place)
        try:
            return self._blobs.put_first(tree, divisions)
        except Suspect:
            return self._put(tree, place)

    def _sure(
        self, tree: Tree, *, series: str | None = None, grown: Mapping[str, Grown] = _NOTHING_GROWN
    ) -> str:
        """The blob of a payload that was looked at closely: what the gate suspects in it still is no secret."""
        self._blobs.gate = None
        try:
            return self._blobs.put(tree, series=series, grown=grown, encoded=True)
        finally:
            self._blobs.gate = None if self._redactor is None else self._redactor.gate

    def _shown(self, src: str) -> str:
        """A place in the code as it is written: folders have names, too."""
        return src if self._redactor is None else self._redactor.name(src)

    def _read(self) -> dict[str, object]:
        """The variables that were read, with placeholders for credentials, however short these are."""
        shown = self._reads.copy() if self._reads is not None else {}
        for name, value in shown.items():
            if isinstance(value, str) and looks_secret(name, value):
                shown[name] = (
                    placeholder(name) if self._redactor is None else self._redactor.variable(name, value)
                )
        return shown

    def _emit(self, kind: str, fields: Mapping[str, Tree]) -> None:
        if self._reads:
            fields = {**fields, "vars": self._put(encode(self._read()), "the environment")}
            self._reads.clear()
        if self._redactor is not None and self._redactor.fresh:
            fields = {**fields, "secrets": self._sure(self._redactor.untold())}
        self._write(kind, dump(dict(fields))[1:-1])

    def _more(self) -> bool:
        """Whether the next entry has fields that are not its own."""
        return bool(self._reads) or (self._redactor is not None and bool(self._redactor.fresh))

    def _write(self, kind: str, text: bytes) -> None:
        """Append an entry, whose fields are ``text``, with the payloads that it names."""
        journal = self._journal
        pending = self._blobs.take()
        journal.offset += len(pending)
        self._append(pending + journal.entry_of(kind, text, at=self._clock()))


class NoLedger:
    """Writes nothing: the ledger of a replay, whose trace exists already."""

    def start(self, facts: Mapping[str, Tree], payloads: Mapping[str, Tree], nonce: bytes) -> None:
        pass

    def request(self, call: Call) -> None:
        pass

    def outcome(
        self,
        call: Call,
        status: Status,
        tree: Tree,
        *,
        d: int | None,
        vt: int,
        usage: Mapping[str, Tree] | None,
        dur: int | None,
        text: bytes | None = None,
    ) -> None:
        pass

    def chunk(self, call: Call, tree: Tree, *, d: int, vt: int, offset: int) -> None:
        pass

    def event(self, kind: str, d: int, vt: int, reads: int | None = None) -> None:
        pass

    def suspend(self, call: Call, ask: str, outside: Outside) -> None:
        pass

    def said(self, call: Call, mail: Mail) -> None:
        pass

    def state(self, entry: StateEntry) -> None:
        pass

    def mark(self, kind: str, tree: Tree, *, call: str | None, why: str | None = None) -> None:
        pass

    def end(self, status: str, tree: Tree, totals: Mapping[str, Tree]) -> None:
        pass
