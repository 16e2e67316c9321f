"""What a recording reads of a trace: each member of each entry, payloads when asked for, and what is missing, named."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from agentloom.errors import FormatError, PayloadMissing
from agentloom.replay.recording import RecordedCall, Recording, facts_of
from agentloom.runtime.profiles import get

START = {"kind": "start", "seq": 0, "run": "r1", "agent": "helper", "entry": "m:helper", "seed": 3}


class Shelf:
    """A journal of entries and payloads by name; ``parts`` are those that name a payload of their own as missing."""

    nonce = bytes(32)

    def __init__(
        self, entries: list[dict[str, Any]], payloads: dict[str, Any], parts: dict[str, str]
    ) -> None:
        self.entries = entries
        self.payloads = payloads
        self.parts = parts
        self.asked: Counter[str] = Counter()

    def tree(self, blob: str) -> Any:
        self.asked[blob] += 1
        if blob not in self.payloads:
            raise PayloadMissing("erased", blob=self.parts.get(blob, blob))
        return self.payloads[blob]

    def value(self, blob: str) -> tuple[Any, bool]:
        return self.tree(blob), True


def recording(
    *entries: dict[str, Any], start: dict[str, Any] | None = None, parts: Any = (), **payloads: Any
) -> Recording:
    listed = [
        {**START, **(start or {})},
        *({"seq": number, **entry} for number, entry in enumerate(entries, 1)),
    ]
    journal: Any = Shelf(listed, payloads, dict(parts))
    return Recording.from_journal(journal)


def request(call: str = "a#1", **more: Any) -> dict[str, Any]:
    fields = {"call": call, "type": "model", "name": "m", "key": "k", "profile": "plain/1", "req": "asked"}
    return {"kind": "request", **fields, **more}


# -- entries ----------------------------------------------------------------------------------------------------------


def test_a_request_with_all_that_it_may_say() -> None:
    said: dict[str, Any] = {
        "src": "f.py:1 f",
        "parent": "p#1",
        "effect": "read",
        "attempt": 2,
        "rule": "rule",
    }
    made = recording(request(**said))
    call = made.calls[0]
    assert [(step.kind, step.seq, step.call, step.d) for step in made.steps] == [("request", 1, call, None)]
    assert (call.index, call.id, call.type, call.name, call.key, call.profile, call.req, call.seq) == (
        1, "a#1", "model", "m", "k", "plain/1", "asked", 1,
    )  # fmt: skip
    assert (call.src, call.parent, call.effect, call.attempt, call.rule) == tuple(said.values())


@pytest.mark.parametrize(
    "odd", [{}, {"src": 5, "parent": 5, "effect": ["read"], "attempt": "2"}, {"attempt": True}]
)
def test_what_a_writer_leaves_out_or_writes_otherwise(odd: dict[str, Any]) -> None:
    call = recording(request(**odd)).calls[0]
    assert (call.src, call.parent, call.effect, call.attempt, call.rule) == ("", None, None, 1, None)
    assert (call.status, call.value, call.usage, call.dur, call.vt, call.chunks, call.left) == (
        None, None, None, None, 0, 0, False,
    )  # fmt: skip


def test_outcomes_with_all_that_they_may_say() -> None:
    made = recording(
        request("a#1"),
        request("b#1"),
        request("c#1"),
        {
            "kind": "outcome",
            "call": "a#1",
            "d": 1,
            "vt": 5,
            "status": "ok",
            "val": "v",
            "usage": {"input": 1},
            "dur": 4,
        },
        {
            "kind": "outcome",
            "call": "b#1",
            "d": 2,
            "vt": 6,
            "status": "error",
            "val": "v",
            "err": "e",
            "usage": 3,
            "dur": "x",
        },
        {"kind": "outcome", "call": "c#1", "status": "cancelled"},
    )
    first, second, third = made.calls
    assert (first.status, first.value, first.usage, first.dur, first.vt, first.left) == (
        "ok", "v", {"input": 1}, 4, 5, False,
    )  # fmt: skip
    assert (second.status, second.value, second.usage, second.dur, second.vt, second.left) == (
        "error", "e", None, None, 6, False,
    )  # fmt: skip
    assert (third.status, third.value, third.vt, third.left) == ("cancelled", None, 0, True)
    told = [(step.kind, step.seq, step.call, step.d, step.vt, step.payload) for step in made.steps[3:]]
    assert told == [
        ("outcome", 4, first, 1, 5, "v"),
        ("outcome", 5, second, 2, 6, "e"),
        ("left", 6, third, None, 0, None),
    ]
    assert not any(step.used for step in made.steps)


def test_chunks_events_and_states_have_their_places() -> None:
    made = recording(
        request("a#1"),
        {"kind": "chunks", "call": "a#1", "items": [[1, 10, 7], [2, 11, 8]], "val": "two"},
        {"kind": "timer", "d": 3, "vt": 12},
        {"kind": "state", "call": "s#1", "name": "route", "val": "where"},
        {"kind": "cancel", "d": 4, "vt": 13},
        {"kind": "turn", "d": 5, "vt": 14},
        two=["x", "y"],
    )
    call = made.calls[0]
    chunks = [(s.kind, s.seq, s.call, s.d, s.vt, s.payload, s.item, s.offset) for s in made.steps[1:3]]
    assert chunks == [("chunk", 2, call, 1, 10, "two", 0, 7), ("chunk", 2, call, 2, 11, "two", 1, 8)]
    events = [(s.kind, s.seq, s.call, s.d, s.vt, s.payload) for s in made.steps[3:]]
    assert events == [
        ("timer", 3, None, 3, 12, None),
        ("state", 4, None, None, 0, "where"),
        ("cancel", 5, None, 4, 13, None),
        ("turn", 6, None, 5, 14, None),
    ]
    assert made.steps[4].fields is not None
    assert made.steps[4].fields["name"] == "route"
    assert call.chunks == 2
    assert list(made.chunks_of(call)) == ["x", "y"]


def test_chunks_are_put_in_order_only_up_to_the_next_entry() -> None:
    made = recording(
        request("a#1"),
        request("b#1"),
        {"kind": "chunks", "call": "a#1", "items": [[2, 0, 0]], "val": "x"},
        {"kind": "chunks", "call": "b#1", "items": [[1, 0, 0]], "val": "x"},
        {"kind": "note"},
        {"kind": "chunks", "call": "a#1", "items": [[0, 0, 0]], "val": "x"},
    )
    assert [step.d for step in made.steps[2:]] == [1, 2, 0]


def test_entries_that_a_replay_passes_over_are_kept_apart() -> None:
    made = recording(
        {"kind": "gap", "why": "x"}, {"kind": "flag"}, {"kind": "seal"}, {"kind": "warp"}, {"kind": "tag"}
    )
    assert [entry["seq"] for entry in made.gaps] == [1]
    assert [entry["kind"] for entry in made.marks] == ["flag", "seal", "tag"]
    assert made.unsupported == [(4, "warp")]
    assert made.steps == []


def test_an_entry_of_a_call_that_was_never_asked_names_both() -> None:
    with pytest.raises(FormatError) as caught:
        recording({"kind": "note"}, {"kind": "outcome", "call": "x#1", "status": "ok", "vt": 0})
    assert (caught.value.code, caught.value.fields["entry"]) == ("unknown-call", 2)
    assert "entry 2 names call x#1" in str(caught.value)


@pytest.mark.parametrize("entries", [[], [{"kind": "request"}]])
def test_a_trace_without_a_start_is_none(entries: list[dict[str, Any]]) -> None:
    journal: Any = Shelf(entries, {}, {})
    with pytest.raises(FormatError) as caught:
        Recording.from_journal(journal)
    assert (caught.value.code, caught.value.line) == ("no-start", 1)
    assert "does not begin with a start entry" in str(caught.value)


def test_what_this_version_cannot_replay_names_its_entry() -> None:
    with pytest.raises(FormatError) as unknown:
        recording({"kind": "warp"}).replayable()
    assert (unknown.value.code, unknown.value.fields["entry"]) == ("unknown-entry", 1)
    assert "newer agentloom" in str(unknown.value.hint)
    recording({"kind": "gap"}).replayable()


def test_a_part_of_a_trace_has_the_numbers_of_the_whole() -> None:
    entries = [START, {**request("y#7"), "seq": 40}, {**request("z#9"), "seq": 90}]
    journal: Any = Shelf(entries, {}, {})
    part = Recording.of_part(journal, {40: 7, 90: 9}, 500)
    assert [(call.index, call.id) for call in part.calls] == [(7, "y#7"), (9, "z#9")]
    assert (part.count, part.total) == (500, 500)
    assert recording(request("a#1"), request("b#1")).count == 2


def test_facts_of_the_run() -> None:
    died = recording()
    assert (died.run, died.agent, died.entry, died.seed) == ("r1", "helper", "m:helper", 3)
    assert (died.closed, died.status, died.output()) == (False, None, None)
    assert recording(start={"seed": None}).seed is None
    done = recording({"kind": "end", "status": "completed", "val": "out"}, out={"a": 1})
    assert (done.closed, done.status, done.output()) == (True, "completed", {"a": 1})
    failed = recording({"kind": "end", "status": "failed", "err": "bad"}, bad={"$error": {}})
    assert (failed.status, failed.output()) == ("failed", {"$error": {}})
    assert recording({"kind": "end", "status": "completed"}).output() is None


# -- payloads ---------------------------------------------------------------------------------------------------------


def test_payloads_are_found_by_what_they_are_of() -> None:
    made = recording(
        request(),
        {"kind": "outcome", "call": "a#1", "d": 1, "vt": 0, "status": "ok", "val": "answered"},
        request("b#1"),
        start={"input": "given"},
        asked={"q": 1}, answered=[2], given={"args": []},
    )  # fmt: skip
    call, open_call = made.calls
    assert (made.request(call), made.outcome(call), made.result(call)) == ({"q": 1}, [2], ([2], True))
    assert (made.outcome(open_call), made.result(open_call)) == (None, (None, True))
    assert (made.payload("input"), made.payload("policy")) == ({"args": []}, None)


def missing(read: Any) -> PayloadMissing:
    with pytest.raises(PayloadMissing) as caught:
        read()
    return caught.value


def test_a_payload_that_is_gone_is_named_with_its_call() -> None:
    made = recording(
        request(),
        {"kind": "outcome", "call": "a#1", "d": 1, "vt": 0, "status": "ok", "val": "answered"},
        {"kind": "chunks", "call": "a#1", "items": [[1, 0, 0]], "val": "pieces"},
        {"kind": "end", "status": "completed", "val": "out"},
        start={"input": "given", "code": "code"},
    )
    call = made.calls[0]
    reads: dict[str, Any] = {
        "the request of call 1 (a#1)": lambda: made.request(call),
        "the outcome of call 1 (a#1)": lambda: made.result(call),
        "chunks of call 1 (a#1)": lambda: made.chunk(made.steps[2]),
        "the run's input": lambda: made.payload("input"),
        "the run's output": made.output,
    }
    blobs = ["asked", "answered", "pieces", "given", "out"]
    for (what, read), blob in zip(reads.items(), blobs, strict=True):
        found = missing(read)
        assert str(found).startswith(f"{what} is no longer in the trace (payload {blob})")
        assert "cannot be replayed" in str(found.hint)
        of_call = ("a#1", 1) if "call" in what else (None, None)
        assert (found.fields["call"], found.fields["index"], found.fields["blob"]) == (*of_call, blob)
    assert made.code_facts().modules == {}


def test_a_part_of_a_payload_that_is_gone_is_named() -> None:
    made = recording(request(), parts={"asked": "piece"})
    found = missing(lambda: made.request(made.calls[0]))
    assert "(payload piece, a part of asked)" in str(found)
    assert found.fields["blob"] == "piece"


def test_a_journal_that_does_not_say_what_is_gone() -> None:
    made = recording(request())
    shelf: Any = made.journal

    def gone(blob: str) -> Any:
        raise PayloadMissing("erased")

    shelf.tree = gone
    found = missing(lambda: made.request(made.calls[0]))
    assert "(payload asked)" in str(found)
    assert found.fields["blob"] == "asked"


def test_a_request_that_is_no_mapping_is_refused() -> None:
    made = recording(request(), asked=[1])
    with pytest.raises(FormatError, match=r"the request of call 1 \(a#1\) is no mapping") as caught:
        made.request(made.calls[0])
    assert (caught.value.code, caught.value.fields["blob"]) == ("entry.field", "asked")
    assert "undamaged copy" in str(caught.value.hint)


@pytest.mark.parametrize("payload", [["only one"], {"no": "list"}])
def test_more_chunks_than_the_payload_has_are_refused(payload: Any) -> None:
    rows = {"kind": "chunks", "call": "a#1", "items": [[1, 0, 0], [2, 0, 0]], "val": "abcdefghijklmnop"}
    made = recording(request(), rows, abcdefghijklmnop=payload)
    with pytest.raises(
        FormatError, match=r"entry 2 has more chunks than its payload abcdefghijkl \["
    ) as caught:
        made.chunk(made.steps[2])
    assert (caught.value.code, "undamaged copy" in str(caught.value.hint)) == ("entry.field", True)


def test_a_batch_of_chunks_is_read_once() -> None:
    rows = {"kind": "chunks", "call": "a#1", "items": [[1, 0, 0], [2, 0, 0]], "val": "two"}
    more = {"kind": "chunks", "call": "a#1", "items": [[3, 0, 0]], "val": "one"}
    made = recording(request(), rows, more, two=["x", "y"], one=["z"])
    assert [made.chunk(step) for step in made.steps[1:]] == ["x", "y", "z"]
    shelf: Any = made.journal
    assert shelf.asked == {"two": 1, "one": 1}
    other = RecordedCall(2, {**request("b#1"), "seq": 9})
    assert list(made.chunks_of(other)) == []


def test_variables_that_were_read_have_their_first_value() -> None:
    made = recording(
        {"kind": "note", "vars": "one"},
        {"kind": "note", "vars": 5},
        {"kind": "note", "vars": "two"},
        start={"vars": "none"},
        one={"A": "1", "B": None}, two={"A": "2", "C": {"$bytes": "eA=="}}, none={"Z": "1"},
    )  # fmt: skip
    assert made.variables() == {"A": "1", "B": None, "C": b"x"}
    assert "the environment that the run read" in str(
        missing(recording({"kind": "note", "vars": "gone"}).variables)
    )


def test_secrets_that_were_redacted_have_their_first_facts() -> None:
    made = recording(
        {"kind": "note", "secrets": "two"},
        {"kind": "note", "secrets": 5},
        {"kind": "note", "secrets": "odd"},
        start={"secrets": "one"},
        one=[{"n": 1, "kind": "key"}, "odd"], two=[{"n": 1, "kind": "other"}, {"n": 2}], odd={"n": 3},
    )  # fmt: skip
    assert {number: secret.kind for number, secret in made.secrets().items()} == {1: "key", 2: "secret"}
    assert recording({"kind": "note", "secrets": "gone"}).secrets() == {}
    assert recording().secrets() == {}


@pytest.mark.parametrize(
    ("policy", "guard"),
    [({"guard": "strict"}, "strict"), ({"guard": 5}, "off"), ({}, "off"), ("strict", "off")],
)
def test_the_guard_of_a_run(policy: Any, guard: str) -> None:
    assert recording(start={"policy": "policy"}, policy=policy).guard == guard
    assert recording().guard == "off"


# -- profiles and code ------------------------------------------------------------------------------------------------


def test_the_profile_of_a_request_is_that_of_its_rule() -> None:
    rule: Any = {"base": "tool/1", "noted": ["trace"]}
    made = recording(
        request("a#1"),
        request("b#1", profile="tool/1+12345678", rule="changed"),
        request("c#1", profile="tool/1+12345678", rule="changed"),
        request("d#1", profile="tool/1+12345678", rule="gone"),
        changed=rule,
    )
    plain, changed, again, lost = made.calls
    assert made.profile(plain) is get("plain/1")
    found = made.profile(changed)
    assert (found.name, found.rule, found.noted) == ("tool/1+12345678", rule, frozenset(["trace"]))
    assert made.profile(again) is found
    shelf: Any = made.journal
    assert shelf.asked["changed"] == 1
    gone = missing(lambda: made.profile(lost))
    assert str(gone).startswith(
        "the rule of profile tool/1+12345678 is no longer in the trace (payload gone)"
    )
    assert (gone.fields["call"], gone.fields["index"]) == ("d#1", 4)


def test_facts_of_the_code() -> None:
    code: Any = {
        "modules": {
            "m": {"source": "x = 1", "file": "m.py"},
            "n": {"source": "y"},
            "o": {"file": "o"},
            "p": 3,
        },
        "packages": ["orjson==3.1", "odd", 5],
        "vcs": {"commit": "0123456789abcdef"},
    }
    env: Any = {"python": "3.11", "implementation": "cpython", "machine": "x", "hash_seed": "0"}
    facts = facts_of(code, env)
    assert {name: (one.text, one.file) for name, one in facts.modules.items()} == {
        "m": ("x = 1", "m.py"),
        "n": ("y", "n"),
    }
    assert dict(facts.packages) == {"orjson": "3.1", "odd": "", "5": ""}
    assert dict(facts.interpreter) == {"python": "3.11", "implementation": "cpython", "machine": "x"}
    assert facts.revision == "0123456"
    assert dict(facts_of({}, {"python": 3.11}).interpreter) == {"python": "3.11"}


@pytest.mark.parametrize(
    ("vcs", "words"),
    [
        (None, ""),
        ({}, ""),
        ({"commit": 5}, ""),
        ({"commit": "abc", "dirty": ""}, "abc"),
        ({"commit": "0123456789", "dirty": "d1"}, "0123456+changes"),
    ],
)
def test_the_revision_in_words(vcs: Any, words: str) -> None:
    assert facts_of({"vcs": vcs}, None).revision == words


def test_facts_of_the_code_are_read_once() -> None:
    made = recording(start={"code": "code", "env": "env"}, code={"packages": ["a==1"]}, env={"machine": "m"})
    facts = made.code_facts()
    assert (dict(facts.packages), dict(facts.interpreter)) == ({"a": "1"}, {"machine": "m"})
    assert made.code_facts() is facts


@pytest.mark.parametrize("modules", [["m"], "m", None])
def test_modules_and_packages_of_an_odd_form_count_as_none(modules: Any) -> None:
    facts = facts_of({"modules": modules, "packages": {"a": 1}}, None)
    assert (dict(facts.modules), dict(facts.packages)) == ({}, {})
