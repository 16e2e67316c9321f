"""The ledger: one append for each entry with its payloads, chunks before what comes next."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import Stopped, StoreFailed
from agentloom.format.journal import check
from agentloom.runtime.calls import Arrival
from agentloom.runtime.ledger import NoLedger
from tests.runtime.fakes import Bench


def test_the_first_line_says_what_the_file_is() -> None:
    first = Bench().tape.parts[0].split(b"\n", 1)[0]
    assert b'"kind":"start","format":"loom"' in first


def test_every_append_is_whole_and_the_chain_holds_after_each() -> None:
    bench = Bench()
    call = bench.begin(text="x" * 100)
    bench.engine.deliver(Arrival("chunk", call, value="one"))
    bench.engine.deliver(Arrival("outcome", call))
    other = bench.begin()
    bench.engine.deliver(Arrival("outcome", other, error=KeyError("gone")))
    bench.engine.mark("flag", "look")
    bench.engine.finish("failed", KeyError("gone"))
    for count in range(1, len(bench.tape.parts) + 1):
        assert check(b"".join(bench.tape.parts[:count])).consistent, count
    assert len(bench.tape.parts) == len(bench.kinds)
    assert (bench.ledger.seq, bench.ledger.head) == (len(bench.kinds) - 1, bench.tape.journal.head)


def test_statuses_decide_which_payload_is_named() -> None:
    named: dict[str, set[str]] = {}
    for status in ("ok", "error", "cancelled", "closed"):
        bench = Bench()
        tree: Any = {
            "$error": {"type": "builtins:KeyError", "args": [], "attrs": {}, "message": "", "cause": None}
        }
        bench.ledger.outcome(bench.begin(), status, tree, d=1, vt=0, usage=None, dur=None)
        named[status] = {"val", "err"} & set(bench.last())
    assert named == {"ok": {"val"}, "error": {"err"}, "cancelled": set(), "closed": set()}


def test_streams_that_interleave_keep_their_numbers() -> None:
    bench = Bench()
    one, two = bench.begin("one"), bench.begin("two")
    for call in (one, two, one):
        bench.engine.deliver(Arrival("chunk", call, value=call.name))
    bench.engine.mark("note", None)
    first, second, note = bench.tape.journal.entries[-3:]
    assert [[item[0] for item in entry["items"]] for entry in (first, second)] == [[1, 3], [2]]
    assert (first["call"], second["call"], note["kind"]) == (one.id, two.id, "note")
    assert "val" not in note


@pytest.mark.parametrize("kind", ["request", "outcome", "timer", "state", "note", "end"])
def test_chunks_go_before_every_kind_of_entry(kind: str) -> None:
    bench = Bench()
    call = bench.begin()
    bench.engine.deliver(Arrival("chunk", call, value=1))
    acts: dict[str, Any] = {
        "request": bench.begin,
        "outcome": lambda: bench.engine.deliver(Arrival("outcome", call)),
        "timer": lambda: bench.engine.deliver(Arrival("timer")),
        "state": lambda: bench.engine.state(bench.session.root, "s", 1, ()),
        "note": lambda: bench.engine.mark("note", 1),
        "end": lambda: bench.engine.finish("completed", 1),
    }
    acts[kind]()
    assert bench.kinds[-2:] == ["chunks", kind]


def test_a_batch_of_chunks_that_cannot_be_written_stops_the_run() -> None:
    bench = Bench()
    call = bench.begin()
    bench.engine.deliver(Arrival("chunk", call, value=1))
    bench.tape.fail_at = 1
    with pytest.raises(Stopped):
        bench.engine.deliver(Arrival("outcome", call))
    assert isinstance(bench.engine.failure, StoreFailed)


def test_the_ledger_of_a_replay_takes_the_same_and_writes_nothing() -> None:
    bench = Bench()
    before = list(bench.tape.parts)
    bench.engine.ledger = NoLedger()
    call = bench.begin()
    bench.engine.deliver(Arrival("chunk", call, value=1))
    bench.engine.deliver(Arrival("outcome", call))
    bench.engine.deliver(Arrival("timer"))
    bench.engine.state(bench.session.root, "s", 1, ())
    bench.engine.mark("note", 1)
    assert bench.engine.finish("completed", [1]) == [1]
    assert bench.tape.parts == before
