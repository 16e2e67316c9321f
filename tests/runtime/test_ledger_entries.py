"""Entries to the byte: what stands in each, in which order, by the quick way of most entries and by the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentloom.format.journal import Journal
from agentloom.runtime import ledger as ledger_module
from agentloom.runtime.calls import Call, CallSpec, Kept
from agentloom.runtime.changes import profile
from agentloom.runtime.ledger import NoLedger, TraceLedger
from tests.runtime.fakes import Bench
from tests.runtime.test_ledger_redact import Marks

SPEC = CallSpec("tool", "find", {"q": "a"}, effect="read", src="agent.py:3 run")
RULE = profile("tool/1", noted=["trace"])


def entry(parts: list[bytes]) -> dict[str, Any]:
    """The last entry, without what every entry has; its members are in the order of the line."""
    fields: dict[str, Any] = json.loads(parts[-1].splitlines()[-1])
    assert list(fields)[:4] == ["seq", "prev", "at", "kind"]
    return {name: value for name, value in fields.items() if name not in ("seq", "prev", "at")}


def made(bench: Bench, spec: CallSpec = SPEC, **changes: Any) -> Call:
    """A call of which nothing is written yet."""
    ledger, bench.engine.ledger = bench.engine.ledger, NoLedger()
    call = bench.engine.begin(spec, bench.session.root)
    bench.engine.ledger = ledger
    for name, value in changes.items():
        setattr(call, name, value)
    return call


@pytest.mark.parametrize(
    ("spec", "changes", "more"),
    [
        (SPEC, {}, {"effect": "read"}),
        (replace(SPEC, effect=None), {}, {}),
        (SPEC, {"parent": "root/x#1"}, {"parent": "root/x#1", "effect": "read"}),
        (replace(SPEC, effect=None), {"parent": "root/x#1"}, {"parent": "root/x#1"}),
        (SPEC, {"attempt": 2}, {"effect": "read", "attempt": 2}),
        (replace(SPEC, effect=None), {"attempt": 3}, {"attempt": 3}),
        (SPEC, {"attempt": 2, "parent": "root/x#1"}, {"parent": "root/x#1", "effect": "read", "attempt": 2}),
        (SPEC, {"rule": RULE}, {"rule": "BLOB", "effect": "read"}),
        (replace(SPEC, name='q"\\é'), {}, {"effect": "read"}),
    ],
)
def test_a_request(spec: CallSpec, changes: dict[str, Any], more: dict[str, Any]) -> None:
    bench = Bench()
    call = made(bench, spec, **changes)
    bench.ledger.request(call)
    found = entry(bench.tape.parts)
    journal = bench.tape.journal
    if "rule" in more:
        more = {**more, "rule": found["rule"]}
        assert journal.tree(found["rule"]) == RULE.rule
    expected = {
        "kind": "request", "call": call.id, "type": "tool", "name": spec.name, "key": call.key,
        "profile": call.profile, "req": found["req"], "src": "agent.py:3 run", **more,
    }  # fmt: skip
    assert list(found.items()) == list(expected.items())
    assert journal.tree(found["req"]) == {"q": "a"}
    assert bench.ledger.seq == journal.entries[-1]["seq"]


def test_requests_of_one_place_share_only_what_is_the_same() -> None:
    """Each differs from the first in one thing; all are written again, from what is remembered of each."""
    bench = Bench()
    other = CallSpec("tool", "find", {"q": "a"}, "plain/1", effect="read", src="agent.py:3 run")
    specs = [
        SPEC,
        replace(SPEC, type="http"),
        replace(SPEC, name="look"),
        replace(SPEC, src="agent.py:4 run"),
        replace(SPEC, effect="write"),
        replace(SPEC, effect=None),
        replace(SPEC, profile="tool/1" if SPEC.profile != "tool/1" else "plain/1"),
        other,
    ]
    parents = [None, "root/x#1", "root/x#2"]
    for _ in range(2):
        for spec in specs:
            for parent in parents:
                call = made(bench, spec, parent=parent)
                bench.ledger.request(call)
                found = entry(bench.tape.parts)
                assert (found["type"], found["name"], found["src"]) == (spec.type, spec.name, spec.src)
                assert (found["profile"], found.get("effect")) == (spec.profile, spec.effect)
                assert (found.get("parent"), found["call"], found["key"]) == (parent, call.id, call.key)


def test_what_requests_share_is_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "_ALIKE", 3)
    bench = Bench()
    for number in [*range(6), *range(6)]:
        bench.ledger.request(made(bench, replace(SPEC, src=f"agent.py:{number} run")))
        assert entry(bench.tape.parts)["src"] == f"agent.py:{number} run"
        assert len(bench.ledger._alike) <= 3
    assert len(bench.ledger._alike) == 3


def test_a_request_is_written_under_the_name_that_was_kept() -> None:
    bench = Bench()
    for attempt in (1, 2):
        call = made(bench, attempt=attempt)
        call.kept = Kept("shown", {"q": "kept"}, {})
        bench.ledger.request(call)
        assert entry(bench.tape.parts)["name"] == "shown"
        assert bench.payload("req") == {"q": "kept"}


@pytest.mark.parametrize("text", [None, b'{"x":1}'])
@pytest.mark.parametrize(
    ("status", "facts", "expected"),
    [
        ("ok", {"d": 1, "dur": 5}, {"d": 1, "vt": 7, "status": "ok", "val": "BLOB", "dur": 5}),
        ("ok", {"d": 1, "dur": 0}, {"d": 1, "vt": 7, "status": "ok", "val": "BLOB", "dur": 0}),
        ("ok", {"d": 1}, {"d": 1, "vt": 7, "status": "ok", "val": "BLOB"}),
        ("ok", {"dur": 5}, {"vt": 7, "status": "ok", "val": "BLOB", "dur": 5}),
        ("ok", {}, {"vt": 7, "status": "ok", "val": "BLOB"}),
        (
            "ok",
            {"d": 1, "dur": 5, "usage": {"input": 3}},
            {"d": 1, "vt": 7, "status": "ok", "val": "BLOB", "usage": {"input": 3}, "dur": 5},
        ),
        ("ok", {"d": 1, "dur": 5, "usage": {}}, {"d": 1, "vt": 7, "status": "ok", "val": "BLOB", "dur": 5}),
        ("error", {"d": 1, "dur": 5}, {"d": 1, "vt": 7, "status": "error", "err": "BLOB", "dur": 5}),
        ("error", {}, {"vt": 7, "status": "error", "err": "BLOB"}),
        ("closed", {"dur": 5}, {"vt": 7, "status": "closed", "dur": 5}),
        ("cancelled", {"d": 2, "dur": 5}, {"d": 2, "vt": 7, "status": "cancelled", "dur": 5}),
    ],
)
def test_an_outcome(status: Any, facts: dict[str, Any], expected: dict[str, Any], text: bytes | None) -> None:
    bench = Bench()
    call = bench.begin()
    given: dict[str, Any] = {"d": None, "dur": None, "usage": None, **facts}
    bench.ledger.outcome(call, status, {"x": 1}, vt=7, text=text, **given)
    found = entry(bench.tape.parts)
    blob = found.get("val", found.get("err"))
    expected = {name: blob if value == "BLOB" else value for name, value in expected.items()}
    assert list(found.items()) == list({"kind": "outcome", "call": call.id, **expected}.items())
    if blob is not None:
        assert bench.tape.journal.tree(blob) == {"x": 1}


def test_the_json_that_is_at_hand_is_what_is_written() -> None:
    bench = Bench()
    for d, text in enumerate((b'{"x":1}', None), 1):
        bench.ledger.outcome(bench.begin(), "ok", {"x": 1}, d=d, vt=0, usage=None, dur=1, text=text)
        assert bench.tape.journal.data(entry(bench.tape.parts)["val"]) == b'{"x":1}'


@pytest.mark.parametrize("what", ["request", "outcome"])
def test_what_was_read_or_met_meanwhile_is_told_by_the_quick_entries_too(what: str) -> None:
    marks: Any = Marks()
    reads: dict[str, Any] = {}
    bench = Bench()
    ledger = bench.ledger = TraceLedger(bench.tape.append, bytes, lambda: 7, reads, marks)
    bench.tape.parts.clear()
    call = made(bench)

    def write() -> dict[str, Any]:
        if what == "request":
            ledger.request(call)
        else:
            ledger.outcome(call, "ok", 1, d=1, vt=0, usage=None, dur=1)
        return entry(bench.tape.parts)

    usual = list(write())
    reads["HOME"] = "/home"
    assert list(write()) == [*usual, "vars"]
    marks.fresh = True
    assert list(write()) == [*usual, "secrets"]
    reads["HOME"], marks.fresh = "/home", True
    assert list(write()) == [*usual, "vars", "secrets"]
    assert list(write()) == usual


def test_a_ledger_without_a_redactor_tells_what_was_read() -> None:
    reads: dict[str, Any] = {}
    bench = Bench()
    ledger = TraceLedger(bench.tape.append, bytes, lambda: 7, reads)
    bench.tape.parts.clear()
    ledger.request(made(bench))
    assert "vars" not in entry(bench.tape.parts)
    reads["HOME"] = "/home"
    ledger.request(made(bench))
    assert "vars" in entry(bench.tape.parts)


def test_other_entries() -> None:
    bench = Bench()
    ledger = bench.ledger
    acts: list[tuple[Callable[[], None], dict[str, Any]]] = [
        (lambda: ledger.event("timer", 3, 9), {"kind": "timer", "d": 3, "vt": 9}),
        (lambda: ledger.mark("note", None, call=None), {"kind": "note"}),
        (
            lambda: ledger.mark("flag", 1, call="root/a#1"),
            {"kind": "flag", "call": "root/a#1", "val": "BLOB"},
        ),
        (lambda: ledger.mark("gap", None, call=None, why="x"), {"kind": "gap", "why": "x"}),
        (
            lambda: ledger.end("completed", 1, {"calls": 0}),
            {"kind": "end", "status": "completed", "val": "BLOB", "totals": {"calls": 0}},
        ),
    ]
    for act, fields in acts:
        act()
        found = entry(bench.tape.parts)
        expected = {name: found[name] if value == "BLOB" else value for name, value in fields.items()}
        assert list(found.items()) == list(expected.items())
    failed = Bench()
    failed.ledger.end("failed", 1, {})
    assert list(entry(failed.tape.parts)) == ["kind", "status", "err", "totals"]


def test_the_places_of_index_entries_count_payloads_too() -> None:
    """The offset that an index entry tells is where it stands in the file."""
    bench = Bench()
    for number in range(2100):
        call = bench.begin(q=number)
        bench.ledger.outcome(call, "ok", number, d=number + 1, vt=0, usage=None, dur=1)
    data = b"".join(bench.tape.parts)
    (index,) = [one for one in Journal.parse(data).entries if one["kind"] == "index"]
    assert data[index["offset"] :].startswith(b'{"seq":%d,' % index["seq"])
