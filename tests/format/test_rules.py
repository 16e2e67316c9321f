"""Which entries may follow each other: each rule with what keeps it and what breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from agentloom.format import merkle
from agentloom.format.fields import KINDS, NOT_REFERENCES, Broken, check_fields, references
from agentloom.format.journal import check
from agentloom.format.rules import AFTER_END, Rules
from agentloom.format.scanning import scan
from spec import verify
from spec.vector_maker import Maker

ID = "ab" * 32


def started() -> Maker:
    return Maker("rules").start()


def asked(*calls: str) -> Maker:
    made = started()
    for call in calls or ("a#0",):
        made.request(call, "tool", "x", {})
    return made


def seal(made: Maker, **changes: Any) -> Maker:
    digests = check(made.data).entries
    rules: dict[str, Any] = {"count": digests, "root": merkle.root(digests_of(made))}
    return made.entry("seal", **rules | changes)


def digests_of(made: Maker) -> list[str]:
    return scan(made.data).digests


GOOD: dict[str, Callable[[], Maker]] = {
    "an outcome": lambda: asked().outcome("a#0", 1),
    "outcomes in another order": lambda: asked("a#0", "a#1").outcome("a#1", 1).outcome("a#0", 1),
    "an outcome without a delivery": lambda: asked().entry("outcome", call="a#0", vt=1, status="closed"),
    "chunks": lambda: asked().entry("chunks", call="a#0", items=[[1, 0, 0], [2, 5, 7]], val=ID),
    "no chunks": lambda: asked().entry("chunks", call="a#0", items=[], val=ID),
    "a timer": lambda: (
        started().entry("timer", d=1, vt=0).entry("turn", d=2, vt=0).entry("cancel", d=3, vt=0)
    ),
    "deliveries in another order": lambda: started().entry("timer", d=2, vt=0).entry("timer", d=1, vt=0),
    "epochs": lambda: started().entry("resume", epoch=2).entry("resume", epoch=3).entry("resume", epoch=4),
    "a request retracted": lambda: asked().entry("retract", **{"from": 1}).request("a#0", "tool", "x", {}),
    "a delivery retracted": lambda: (
        asked()
        .outcome("a#0", 1)
        .entry("retract", **{"from": 2})
        .entry("outcome", call="a#0", d=1, vt=1, status="ok")
    ),
    "twice retracted": lambda: (
        asked()
        .entry("retract", **{"from": 1})
        .entry("retract", **{"from": 1})
        .request("a#0", "tool", "x", {})
    ),
    "an outcome retracted twice": lambda: (
        asked()
        .outcome("a#0", 1)
        .entry("retract", **{"from": 2})
        .entry("retract", **{"from": 2})
        .outcome("a#0", 1)
    ),
    "the last entry retracted": lambda: asked().entry("retract", **{"from": 1}),
    "seals": lambda: seal(seal(asked()).outcome("a#0", 1)),
    "totals of what there is": lambda: asked().outcome("a#0", 1).end(totals={"calls": 1, "deliveries": 1}),
    "totals in part": lambda: asked().end(totals={"calls": 1, "other": 9}),
    "an unknown kind": lambda: started().entry("later", call=7, d="x"),
    **{
        f"{kind} after the end": lambda kind=kind: started().end().entry(kind)  # type: ignore[misc]
        for kind in ("tag", "flag", "note")
    },
}


@pytest.mark.parametrize("make", GOOD.values(), ids=list(GOOD))
def test_what_may_stand_there(make: Callable[[], Maker]) -> None:
    data = make().data
    verdict = check(data)
    assert verdict.consistent, verdict.message
    assert verify.check(data)["consistent"]


BAD: list[tuple[str, Callable[[], Maker], str, str]] = [
    ("asked twice", lambda: asked("a#0", "a#0"), "call.duplicate", "call a#0 is requested twice"),
    ("no call id", lambda: asked("a"), "callid.syntax", "'a' is not a call id"),
    ("nobody asked", lambda: started().outcome("a#0", 1), "call.unknown", "nothing requested call a#0"),
    (
        "two outcomes",
        lambda: asked().outcome("a#0", 1).outcome("a#0", 1),
        "call.answered",
        "call a#0 has two",
    ),
    (
        "chunks of nothing",
        lambda: started().entry("chunks", call="a#0", items=[], val=ID),
        "call.unknown",
        "nothing requested call a#0",
    ),
    (
        "late chunks",
        lambda: asked().outcome("a#0", 1).entry("chunks", call="a#0", items=[], val=ID),
        "call.answered",
        "chunks of call a#0 after its outcome",
    ),
    *(
        (
            f"chunk item {item}",
            lambda item=item: asked().entry("chunks", call="a#0", items=[[1, 0, 0], item], val=ID),
            "entry.field",
            r"a chunk item is \[d, vt, offset\]",
        )
        for item in (
            7,
            [2, 0],
            [2, 0, 0, 0],
            [2, 0, "0"],
            [2, 0.5, 0],
            [True, 0, 0],
            {"a": 1, "b": 2, "c": 3},
        )
    ),
    (
        "a chunk delivered twice",
        lambda: asked().entry("chunks", call="a#0", items=[[1, 0, 0], [1, 0, 0]], val=ID),
        "order.delivery",
        "delivery 1 happens twice",
    ),
    ("delivery 0", lambda: started().entry("timer", d=0, vt=0), "entry.field", "an integer from 1"),
    ("delivery in text", lambda: asked().outcome("a#0", 1, d="1"), "entry.field", "an integer from 1"),
    (
        "twice",
        lambda: started().entry("timer", d=4, vt=0).entry("turn", d=4, vt=0),
        "order.delivery",
        "delivery 4",
    ),
    (
        "a delivery left out",
        lambda: started().entry("timer", d=2, vt=0).end(),
        "order.delivery",
        "delivery 1 never",
    ),
    (
        "the third left out",
        lambda: started().entry("timer", d=2, vt=0).entry("timer", d=4, vt=0).entry("timer", d=1, vt=0).end(),
        "order.delivery",
        "delivery 3 never happened",
    ),
    ("the same epoch", lambda: started().entry("resume", epoch=1), "order.epoch", "epoch 1 after epoch 1"),
    (
        "an epoch left out",
        lambda: started().entry("resume", epoch=2).entry("resume", epoch=4),
        "order.epoch",
        "epoch 4 after epoch 2",
    ),
    *(
        (
            f"retracting from {first}",
            lambda first=first: asked().entry("retract", **{"from": first}),
            "retract.range",
            f"cannot retract from entry {first}",
        )
        for first in (0, -1, 2, 3)
    ),
    (
        "what was not retracted",
        lambda: asked("a#0", "a#1").entry("retract", **{"from": 2}).request("a#0", "tool", "x", {}),
        "call.duplicate",
        "call a#0",
    ),
    (
        "answered before what was retracted",
        lambda: asked().outcome("a#0", 1).entry("note").entry("retract", **{"from": 3}).outcome("a#0", 1),
        "call.answered",
        "call a#0",
    ),
    (
        "delivered before what was retracted",
        lambda: started().entry("timer", d=1, vt=0).entry("retract", **{"from": 2}),
        "retract.range",
        "entry 2",
    ),
    (
        "erased by name",
        lambda: started().entry("erase", blobs=["x"], val=ID),
        "entry.field",
        "names blobs by their",
    ),
    (
        "erased by number",
        lambda: started().entry("erase", blobs=[7], val=ID),
        "entry.field",
        "names blobs by their",
    ),
    (
        "the nonce left",
        lambda: started().entry("erase", blobs=[ID], val=ID),
        "erase.nonce",
        "the key nonce was not",
    ),
    ("too many sealed", lambda: seal(asked(), count=3), "seal.count", "over 3 entries stands after 2"),
    ("another root", lambda: seal(asked(), root=ID), "seal.root", "the root is not that"),
    ("an old root", lambda: seal(asked(), root=merkle.root([ID, ID])), "seal.root", "the root is not that"),
    *(
        (
            f"totals {totals}",
            lambda totals=totals: asked().outcome("a#0", 1).end(totals=totals),
            "end.totals",
            words,
        )
        for totals, words in (
            ({"calls": 2}, "totals.calls is not 1"),
            ({"calls": 1, "deliveries": 0}, "totals.deliveries is not 1"),
            ([1], "totals.calls is not 1"),
            (7, "totals.calls is not 1"),
        )
    ),
    ("rehashed", lambda: started().entry("rehash", digest="md5", head="x"), "version.digest", "digest 'md5'"),
    ("started twice", lambda: started().entry("start"), "order.start", "a second start entry"),
    *(
        (
            f"a {kind} after the end",
            lambda kind=kind: started().end().entry(kind),
            "order.closed",
            f"{kind} entry after the end entry",
        )
        for kind in sorted(KINDS - AFTER_END - {"start"} | {"later"})
    ),
    *(
        (
            f"starting with {name} {value}",
            lambda name=name, value=value: Maker("x").start(**{name: value}),
            code,
            words,
        )
        for name, value, code, words in (
            ("format", "yarn", "file.foreign", "not a start entry of format loom"),
            ("version", 1, "entry.field", "version 1 is not major.minor"),
            ("version", "01.0", "entry.field", "version '01.0' is not major.minor"),
            ("version", "2.0", "version.major", "format version 2.0; this reader knows 1"),
            ("version", "10.0", "version.major", "format version 10.0"),
            ("flags", ["x", "y"], "version.flag", "the trace needs 'x'"),
            ("digest", "md5", "version.digest", "a digest or key algorithm"),
            ("keys", 2, "version.digest", "a digest or key algorithm"),
            ("run", "7f3a", "entry.field", "'7f3a' is not a run id"),
            ("epoch", "1", "entry.field", r"start entry needs epoch \(int\)"),
            *(
                (name, "absent", "entry.field", f"start entry needs {name}")
                for name in ("flags", "digest", "keys")
            ),
            *(
                (name, "absent", "entry.field", f"start entry needs {name}")
                for name in ("run", "epoch", "nonce")
            ),
        )
    ),
]


@pytest.mark.parametrize(("make", "code", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_may_not_stand_there(make: Callable[[], Maker], code: str, words: str) -> None:
    data = make().data
    verdict = check(data)
    assert verdict.code == code, verdict.message
    assert re.search(words, verdict.message)
    assert not verify.check(data)["consistent"]


def test_versions_of_the_same_major_are_read() -> None:
    for version in ("1.0", "1.1", "1.10"):
        assert check(Maker("x").start(version=version).data).consistent


def taken(rules: Rules, kind: str, **fields: Any) -> None:
    rules.entry(
        {"seq": rules.seq, "prev": rules.prev, "at": 1, "kind": kind, **fields}, f"{rules.seq + 1:064x}"
    )


def test_rules_remember_what_they_took() -> None:
    assert Rules().gaps is False
    rules = Rules()
    taken(rules, "start", **{**start_fields(), "epoch": 5})
    taken(rules, "resume", epoch=6)
    taken(rules, "gap", why="x")
    taken(rules, "erase", blobs=[start_fields()["nonce"], ID], val=ID)
    taken(rules, "erase", blobs=[ID], val=ID)
    taken(rules, "end", status="failed")
    assert (rules.seq, rules.prev, len(rules.digests)) == (6, f"{6:064x}", 6)
    assert rules.start["epoch"] == 5
    assert rules.end is not None
    assert rules.end["status"] == "failed"
    assert rules.gaps is True
    assert rules.erased == {start_fields()["nonce"]: 3, ID: 3}
    assert rules.missing_delivery() is None


def start_fields() -> dict[str, Any]:
    blobs = {name: name[0].encode().hex() * 32 for name in ("code", "env", "input", "policy", "nonce")}
    return {
        "format": "loom",
        "version": "1.0",
        "run": "01hf7yat000000000000000000",
        "digest": "sha256",
        "flags": [],
        "keys": 1,
        "agent": "a",
        "clock": {},
        "epoch": 1,
        **blobs,
    }


@pytest.mark.parametrize(
    ("changes", "integrity"),
    [
        ({"seq": 2}, True),
        ({"seq": 0}, True),
        ({"prev": "0" * 64}, True),
        ({"prev": None}, True),
        ({"seq": "1"}, False),
        ({"seq": True}, False),
        ({"at": 1.5}, False),
        ({"at": None}, False),
        ({"kind": 7}, False),
        ({"kind": ["note"]}, False),
    ],
    ids=str,
)
def test_every_entry_has_its_number_its_chain_and_its_time(changes: dict[str, Any], integrity: bool) -> None:
    rules = Rules()
    taken(rules, "start", **start_fields())
    entry = {"seq": 1, "prev": rules.prev, "at": 1, "kind": "note"} | changes
    with pytest.raises(Broken) as caught:
        rules.entry(entry, ID)
    assert caught.value.integrity is integrity
    assert caught.value.code == (
        "entry.field" if not integrity else "entry.seq" if "seq" in changes else "chain.prev"
    )
    assert rules.seq == 1
    assert len(caught.value.message.split()) > 3


def test_numbers_of_entries_stay_exact_in_every_reader_of_json() -> None:
    rules = Rules()
    taken(rules, "start", **start_fields())
    rules.seq = 2**53 - 1
    taken(rules, "note")
    with pytest.raises(Broken, match=f"entry {2**53} stands where") as caught:
        taken(rules, "note")
    assert (caught.value.code, caught.value.integrity) == ("entry.seq", True)


REQUIRED = [
    ("request", "call", "str"),
    ("request", "req", "str"),
    ("outcome", "vt", "int"),
    ("chunks", "items", "list"),
    ("index", "last", "int"),
    ("index", "offset", "int"),
    ("start", "clock", "dict"),
]
WHOLE: dict[str, dict[str, Any]] = {
    "request": {"call": "a#0", "type": "t", "name": "n", "key": "k", "profile": "p", "req": ID},
    "outcome": {"call": "a#0", "vt": 1, "status": "ok"},
    "chunks": {"call": "a#0", "items": [], "val": ID},
    "index": {"offset": 1, "last": None},
    "start": start_fields(),
}


@pytest.mark.parametrize(("kind", "name", "wanted"), REQUIRED)
def test_a_field_that_is_missing_or_of_another_type_is_named(kind: str, name: str, wanted: str) -> None:
    fields = WHOLE[kind]
    assert check_fields(dict(fields), kind)
    without = {key: value for key, value in fields.items() if key != name}
    for entry in (without, {**fields, name: 1.5}, {**fields, name: True}):
        with pytest.raises(Broken) as caught:
            check_fields(entry, kind)
        assert (caught.value.code, caught.value.integrity, caught.value.version) == (
            "entry.field",
            False,
            False,
        )
        assert f"{kind} entry needs {name} ({wanted})" in caught.value.message


@pytest.mark.parametrize("value", [7, None, "ab" * 31, "ab" * 31 + "AB", "ab" * 33, [ID]], ids=str)
def test_a_field_that_names_a_blob_holds_its_id_whatever_the_kind(value: Any) -> None:
    for name in ("err", "rule", "tags", "conversation", "who", "default", "changes"):
        assert check_fields({name: ID}, "note")
        with pytest.raises(Broken) as caught:
            check_fields({name: value}, "note")
        assert caught.value.code == "entry.field"
        assert caught.value.message.startswith(f"{name} of")
        assert "note entry is not a blob id" in caught.value.message


def test_a_status_is_one_of_its_kind() -> None:
    for kind, good, bad in (
        ("outcome", "closed", "completed"),
        ("end", "completed", "ok"),
        ("end", "failed", "error"),
    ):
        assert check_fields({**WHOLE["outcome"], "status": good}, kind)
        with pytest.raises(Broken) as caught:
            check_fields({**WHOLE["outcome"], "status": bad}, kind)
        assert caught.value.code == "entry.field"
        assert caught.value.message.startswith(f"'{bad}' is no status of")
    assert not check_fields({"status": "odd", "val": 7}, "later")


def test_references_are_found_wherever_they_stand_but_where_they_are_none() -> None:
    other, third, fourth = "cd" * 32, "ef" * 32, "12" * 32
    entry = {"val": ID, "x": [1, [other], {"y": third}], "prev": fourth, "call": ID, "reads": [fourth]}
    assert references(entry) == [ID, other, third]
    assert references({"reads": {"name": fourth}, "args": {"goto": [ID], "z": fourth}}) == [fourth]
    assert references({"val": ID.upper(), "x": ID[:-1], "y": ID + "a"}) == []
    for name in NOT_REFERENCES:
        assert references({name: ID}) == []
