"""The ledger and a redactor: what the gate suspects is looked at under the name of its place, then written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentloom.format.blobs import Suspect
from agentloom.format.values import Tree
from agentloom.runtime import ledger as ledger_module
from agentloom.runtime.ambient import placeholder
from agentloom.runtime.calls import Arrival, CallSpec, Kept
from agentloom.runtime.changes import profile
from agentloom.runtime.engine import Engine, State
from agentloom.runtime.ledger import NoLedger, TraceLedger
from agentloom.runtime.places import Places
from agentloom.runtime.registry import TYPES
from tests.runtime.fakes import Bench

SECRET, MARK = "swordfish!", "(mark)"


class Marks:
    """Stands in for a redactor: suspects what holds one secret, and puts the mark in its place."""

    def __init__(self) -> None:
        self.place: str | None = None
        self.places: list[str | None] = []
        self.fresh = False

    def gate(self, data: bytes) -> None:
        if SECRET.encode() in data:
            raise Suspect

    def tree(self, tree: Any) -> Any:
        if isinstance(tree, list) and SECRET not in str(tree):
            return tree
        self.places.append(self.place)
        return MARK

    def divisions(self) -> None:
        """None of its payloads were searched before."""

    def untold(self) -> list[Tree]:
        self.fresh = False
        return [{"n": 1, "kind": "key"}]

    def name(self, name: str) -> str:
        return name.replace(SECRET, MARK)

    def variable(self, name: str, value: str) -> str:
        return f"{MARK} {name} {len(value)}"


class Streams:
    """Stands in for what a stream said so far."""

    made: list[Streams]

    def __init__(self, redactor: object) -> None:
        self.redactor = redactor
        self.seen: list[tuple[list[Any], bool]] = []
        type(self).made.append(self)

    def redacted(self, values: list[Tree], *, final: bool) -> list[Tree]:
        self.seen.append((list(values), final))
        return [MARK for _ in values]


@pytest.fixture
def marks() -> Marks:
    return Marks()


def _bench(marks: Marks | None, reads: dict[str, Any] | None = None) -> Bench:
    bench = Bench()
    bench.tape.parts.clear()
    redactor: Any = marks
    bench.ledger = TraceLedger(bench.tape.append, bytes, lambda: 7, reads, redactor)
    bench.engine = Engine(bench.ledger, bench.source, nonce=bytes(32), types=TYPES, places=Places("/"))
    bench.session.engine = bench.engine
    return bench


FACTS: dict[str, Tree] = {
    "format": "loom", "version": "1.0", "run": "01hf7yat00260syt5szda5kqfb", "digest": "sha256", "flags": [],
    "keys": 1, "agent": "probe", "entry": "m:f", "seed": 3, "clock": {"start": 1, "resolution": 1}, "epoch": 1,
}  # fmt: skip


def _started(marks: Marks | None, reads: dict[str, Any] | None = None, **payloads: Tree) -> Bench:
    bench = _bench(marks, reads)
    bench.ledger.start(FACTS, {"code": {}, "env": {}, "input": {}, "policy": {}, **payloads}, bytes(32))
    return bench


def test_a_payload_that_may_hold_a_secret_is_looked_at_by_its_place(marks: Marks) -> None:
    bench = _started(marks, input=SECRET)
    engine, ledger = bench.engine, bench.ledger
    assert bench.payload("input") == MARK
    call = bench.begin()
    engine.deliver(Arrival("outcome", call, value=SECRET))
    assert bench.payload("val") == MARK
    other = bench.begin()
    engine.deliver(Arrival("outcome", other, error=ValueError(SECRET)))
    assert bench.payload("err") == MARK
    ledger.state(State("s#1", "route", "k", SECRET, (), "f.py:1 f"))
    assert bench.payload("val") == MARK
    ledger.mark("flag", SECRET, call=None)
    assert bench.payload("val") == MARK
    engine.finish("completed", SECRET)
    assert bench.payload("val") == MARK
    assert marks.places == ["the input", "call 1", "call 2", "state route", "the flag entry", "the output"]


def test_a_profile_that_may_hold_a_secret_is_looked_at_too(marks: Marks) -> None:
    bench = _started(marks)
    bench.engine.ledger = NoLedger()
    call = bench.begin()
    call.rule = profile("tool/1", noted=["trace"])
    marks.gate = lambda data: _suspect() if b"trace" in data else None  # type: ignore[method-assign]
    bench.ledger._blobs.gate = marks.gate
    bench.ledger.request(call)
    assert bench.payload("rule") == MARK
    assert marks.places == ["a profile"]


def _suspect() -> None:
    raise Suspect


def test_what_was_looked_at_passes_the_gate_once_and_only_that(marks: Marks) -> None:
    bench = _started(marks)
    assert bench.ledger._blobs.gate == marks.gate
    marks.tree = lambda tree: [tree]  # type: ignore[method-assign]
    bench.ledger.mark("flag", SECRET, call=None)
    assert bench.payload("val") == [SECRET]
    assert bench.ledger._blobs.gate == marks.gate
    with pytest.raises(Suspect):
        bench.begin(q=SECRET)
    plain = _started(None)
    plain.ledger._sure("x")
    assert plain.ledger._blobs.gate is None


def test_a_request_is_written_as_it_was_kept(marks: Marks) -> None:
    bench = _started(marks)
    bench.engine.ledger = NoLedger()
    series: list[Any] = []
    for turn in range(3):
        series.append({"role": "user", "content": f"question {turn} " * 40})
        call = bench.engine.begin(
            CallSpec("model", "m", {"messages": series}, "agentloom.model/1", series="m"), bench.session.root
        )
        call.kept = Kept("shown", {**call.tree, "q": MARK}, call.grown)
        bench.ledger.request(call)
        assert bench.last()["name"] == "shown"
        assert bench.payload("req") == {"messages": series, "q": MARK}
    assert len(bench.tape.parts[-1]) < len(bench.tape.parts[-2]) * 1.5
    assert len(bench.tape.parts[-1]) < len(str(series))


def test_new_secrets_are_told_once_with_the_next_entry(marks: Marks) -> None:
    bench = _bench(marks)
    marks.fresh = True
    bench.ledger.start(FACTS, {"code": {}, "env": {}, "input": {}, "policy": {}}, bytes(32))
    assert bench.payload("secrets") == [{"n": 1, "kind": "key"}]
    bench.ledger.event("timer", 1, 0)
    assert "secrets" not in bench.last()
    marks.fresh = True
    bench.ledger.event("timer", 2, 0)
    assert bench.payload("secrets") == [{"n": 1, "kind": "key"}]
    assert "secrets" not in _started(None).last()


def test_variables_that_were_read_are_told_once_without_credentials(marks: Marks) -> None:
    reads: dict[str, Any] = {}
    bench = _started(marks, reads)
    reads.update({"HOME": "/home", "UNSET": None, "MY_API_KEY": "k"})
    bench.ledger.event("timer", 1, 0)
    assert bench.payload("vars") == {"HOME": "/home", "UNSET": None, "MY_API_KEY": f"{MARK} MY_API_KEY 1"}
    assert reads == {}
    bench.ledger.event("timer", 2, 0)
    assert "vars" not in bench.last()
    reads["A"] = SECRET
    bench.ledger.event("timer", 3, 0)
    assert (bench.payload("vars"), marks.places) == (MARK, ["the environment"])
    alone = _started(None, reads)
    reads["MY_API_KEY"] = "k"
    alone.ledger.event("timer", 1, 0)
    assert alone.payload("vars")["MY_API_KEY"] == placeholder("MY_API_KEY")
    assert _started(None).ledger._read() == {}


def test_chunks_are_redacted_as_one_stream_of_their_call(
    marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    Streams.made = []
    monkeypatch.setattr(ledger_module, "Joined", Streams)
    bench = _started(marks)
    one, other = bench.begin("one"), bench.begin("other")
    deliver: Callable[[Arrival], object] = bench.engine.deliver
    for call, value in ((one, "a"), (other, "x"), (one, "b")):
        deliver(Arrival("chunk", call, value=value))
    bench.engine.mark("note", None)
    first, second = bench.tape.journal.entries[-3:-1]
    assert [bench.tape.journal.tree(str(entry["val"])) for entry in (first, second)] == [[MARK, MARK], [MARK]]
    assert marks.place == "call 2"
    deliver(Arrival("chunk", one, value="c"))
    deliver(Arrival("outcome", one))
    assert [(stream.redactor, stream.seen) for stream in Streams.made] == [
        (marks, [(["a", "b"], False), (["c"], True)]),
        (marks, [(["x"], False)]),
    ]
    deliver(Arrival("outcome", bench.begin("third")))
    assert set(bench.ledger._streams) == {other.id}
    deliver(Arrival("outcome", other))
    assert bench.ledger._streams == {}


def test_chunks_that_may_hold_a_secret_all_the_same_are_looked_at(
    marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    Streams.made = []
    monkeypatch.setattr(ledger_module, "Joined", Streams)
    monkeypatch.setattr(Streams, "redacted", lambda self, values, *, final: [SECRET])
    bench = _started(marks)
    call = bench.begin()
    bench.engine.deliver(Arrival("chunk", call, value="a"))
    bench.engine.mark("note", None)
    assert marks.places == ["call 1"]


def test_without_a_redactor_chunks_are_written_as_they_are() -> None:
    bench = _started(None)
    call = bench.begin()
    bench.engine.deliver(Arrival("chunk", call, value=SECRET))
    bench.engine.deliver(Arrival("outcome", call))
    chunks = bench.tape.journal.entries[-2]
    assert bench.tape.journal.tree(str(chunks["val"])) == [SECRET]


def test_a_place_in_the_code_is_written_without_secrets() -> None:
    written: list[bytes] = []
    ledger = TraceLedger(written.append, lambda count: b"\x01" * count, redactor=Marks())  # type: ignore[arg-type]
    ledger.state(State("root/a#1", "s", "k", None, (), f"{SECRET}/agent.py:7 run"))
    assert b'"src":"(mark)/agent.py:7 run"' in written[0]


def test_a_history_that_was_kept_is_written_as_what_was_added(marks: Marks) -> None:
    """Each turn takes as many bytes as the one before, however long the history is."""
    bench = _started(marks)
    bench.engine.ledger = NoLedger()
    series: list[Any] = []
    sizes: list[int] = []
    for turn in range(80):
        series.append({"role": "user", "content": f"question {turn:03}"})
        spec = CallSpec("model", "m", {"messages": series}, "agentloom.model/1", series="m")
        call = bench.engine.begin(spec, bench.session.root)
        call.kept = Kept("shown", call.tree, call.grown)
        bench.ledger.request(call)
        sizes.append(len(bench.tape.parts[-1]))
    assert max(sizes[40:]) < 1.2 * sizes[20]
    assert bench.payload("req") == {"messages": series}
