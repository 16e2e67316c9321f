"""The engine and a redactor: what is written of a request is looked at where it must be, and its key is of that."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from agentloom.errors import Diverged, StoreFailed, UnrecordedEffect
from agentloom.format.blobs import Suspect
from agentloom.format.digests import request_key
from agentloom.format.values import Tree, encode
from agentloom.runtime.calls import Arrival, Call, CallSpec, Kept
from agentloom.runtime.changes import profile, use_profiles
from agentloom.runtime.engine import Engine
from agentloom.runtime.places import Places
from agentloom.runtime.registry import TYPES
from tests.runtime.fakes import Bench

MODEL = "agentloom.model/1"
SECRET, MARK = "swordfish!", "(mark)"


class Marks:
    """Stands in for a redactor: puts a mark in the place of one secret."""

    def __init__(self, *, needs: bool = False) -> None:
        self.clear: set[str] = {"clear"}
        self.place: str | None = None
        self.looked: list[str] = []
        self.learnt: list[object] = []
        self._needs = needs

    def _of(self, tree: Any) -> Any:
        if isinstance(tree, str):
            return tree.replace(SECRET, MARK) if SECRET in tree else tree
        if isinstance(tree, list):
            made = [self._of(item) for item in tree]
            return made if any(new is not old for new, old in zip(made, tree, strict=True)) else tree
        if isinstance(tree, dict):
            fields = {name: self._of(item) for name, item in tree.items()}
            return fields if any(fields[name] is not tree[name] for name in tree) else tree
        return tree

    def name(self, name: str) -> str:
        made: str = self._of(name)
        return made

    def needs(self, grown: Mapping[str, Any]) -> bool:
        return self._needs

    def request(
        self, tree: dict[str, Tree], grown: Mapping[str, Any]
    ) -> tuple[dict[str, Tree], dict[str, Any]]:
        self.looked.append(str(self.place))
        made = self._of(tree)
        return made, {name: one for name, one in grown.items() if made.get(name) is tree.get(name)}

    def learn_request(self, rule: Any, request: Mapping[str, object]) -> None:
        self.learnt.append((rule.name, dict(request)))

    def clean(self, tree: Any) -> Any:
        return self._of(tree)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def _marks(bench: Bench, **options: Any) -> Marks:
    marks: Any = Marks(**options)
    bench.engine.redactor = marks
    made: Marks = marks
    return made


def _begin(
    bench: Bench, name: str = "m", kind: str = "tool", base: str = "plain/1", **request: object
) -> Call:
    series = "m" if kind == "model" else None
    return bench.engine.begin(CallSpec(kind, name, request, base, series=series), bench.session.root)


def _key(kind: str, name: str, fields: Any, base: str = "plain/1") -> str:
    return request_key(bytes(32), base, {"type": kind, "name": name, "fields": fields})


def test_an_engine_has_the_redactor_that_it_is_given(bench: Bench) -> None:
    marks: Any = Marks()
    made = Engine(
        bench.ledger, bench.source, nonce=bytes(32), types=TYPES, places=Places("/"), redactor=marks
    )
    assert made.redactor is marks


def test_without_a_redactor_nothing_is_looked_at(bench: Bench) -> None:
    call = _begin(bench, q=SECRET)
    assert bench.engine.redact(call) is False
    assert (call.kept, call.key) == (None, _key("tool", "m", {"q": SECRET}))


def test_a_request_that_holds_no_secret_stays_as_it_was_made(bench: Bench) -> None:
    marks = _marks(bench)
    call = _begin(bench, q="x")
    assert (call.kept, marks.looked) == (None, [])
    assert bench.engine.redact(call) is False
    assert call.kept == Kept("m", call.tree, {})
    assert call.kept.tree is call.tree
    assert (call.key, marks.looked) == (_key("tool", "m", {"q": "x"}), ["call 1"])


@pytest.mark.parametrize(("name", "q"), [("m", SECRET), (SECRET, "x"), (SECRET, SECRET)])
def test_what_is_written_of_a_request_has_a_key_of_its_own(bench: Bench, name: str, q: str) -> None:
    call = _begin(bench, name, q=q)
    _marks(bench)
    assert bench.engine.redact(call) is True
    shown = name.replace(SECRET, MARK)
    kept: dict[str, Tree] = {"q": q.replace(SECRET, MARK)}
    assert call.kept == Kept(shown, kept, {})
    assert (call.name, call.key_tree, call.noted) == (shown, kept, {})
    assert call.key == _key("tool", shown, kept)
    assert call.tree == {"q": q}


def test_fields_that_are_noted_stay_noted(bench: Bench) -> None:
    call = _begin(bench, kind="model", base=MODEL, model="m", user=SECRET, seed=1)
    marks = _marks(bench)
    assert bench.engine.redact(call) is True
    assert (call.key_tree, call.noted) == ({"model": "m", "seed": 1}, {"user": MARK})
    assert call.key == _key("model", "m", {"model": "m", "seed": 1}, MODEL)
    assert marks.looked == ["call 1"]
    gone = _begin(bench, kind="model", base=MODEL, model=SECRET, user="u")
    removed = marks.request
    marks.request = lambda tree, grown: ({"model": MARK}, {})  # type: ignore[method-assign]
    bench.engine.redact(gone)
    assert (gone.key_tree, gone.noted) == ({"model": MARK}, {})
    marks.request = removed  # type: ignore[method-assign]


def test_parts_of_fields_are_sorted_apart_again(bench: Bench) -> None:
    rule = profile("tool/1", noted=["args.trace"])
    with use_profiles(rule):
        call = _begin(bench, base="tool/1", args={"order": SECRET, "trace": SECRET})
    _marks(bench)
    assert bench.engine.redact(call) is True
    assert (call.key_tree, call.noted) == ({"args": {"order": MARK}}, {"args": {"trace": MARK}})
    assert call.key == _key("tool", "m", {"args": {"order": MARK}}, rule.name)


@pytest.mark.parametrize("noted", [[], ["tools[].id", "messages[].name"]], ids=["whole", "parts"])
def test_the_key_of_a_history_is_that_of_what_is_written(bench: Bench, noted: list[str]) -> None:
    rule = profile(MODEL, noted=noted) if noted else None
    marks = _marks(bench, needs=True)
    messages: list[dict[str, str]] = []
    with use_profiles(*[rule] if rule else []):
        for turn in range(3):
            messages.append({"role": "user", "content": f"question {turn} " * 40, "name": f"n{turn}"})
            tools = [{"name": SECRET, "id": "7"}]
            call = _begin(bench, kind="model", base=MODEL, model="m", messages=messages, tools=tools)
            shown = [{"name": MARK} if noted else {"name": MARK, "id": "7"}]
            left = [{k: v for k, v in one.items() if k != "name" or not noted} for one in messages]
            fields = {"model": "m", "messages": left, "tools": shown}
            assert call.key == _key("model", "m", fields, rule.name if rule else MODEL)
            assert call.key_tree == fields
            assert bench.payload("req")["tools"] == [{"name": MARK, "id": "7"}]
    assert marks.looked == ["call 1", "call 2", "call 3"]


@pytest.mark.parametrize(("name", "looks"), [(SECRET, True), ("m", False), ("clear", False)])
def test_a_name_that_holds_a_secret_is_seen_before_it_is_written(
    bench: Bench, name: str, looks: bool
) -> None:
    marks = _marks(bench)
    _begin(bench, name, q="x")
    assert marks.looked == (["call 1"] if looks else [])
    assert bench.last()["name"] == name.replace(SECRET, MARK)
    marks.clear.add(SECRET)
    assert _begin(bench, SECRET).kept is None


def test_histories_are_looked_at_only_where_they_must_be(bench: Bench) -> None:
    text = "question " * 40
    for needs, kind, looks in ((True, "model", True), (False, "model", False), (True, "tool", False)):
        marks = _marks(bench, needs=needs)
        base = MODEL if kind == "model" else "plain/1"
        _begin(bench, kind=kind, base=base, model="m", messages=[{"role": "user", "content": text}])
        assert bool(marks.looked) is looks


def test_what_the_gate_suspects_is_looked_at_and_written_again(bench: Bench) -> None:
    marks = _marks(bench)
    asked: list[Call] = []
    write = bench.ledger.request

    def suspects(call: Call) -> None:
        asked.append(call)
        if len(asked) == 1:
            raise Suspect
        write(call)

    bench.ledger.request = suspects  # type: ignore[method-assign]
    call = _begin(bench, q=SECRET)
    assert asked == [call, call]
    assert marks.looked == ["call 1"]
    assert (bench.payload("req"), bench.last()["key"]) == ({"q": MARK}, call.key)


def test_secrets_of_a_request_are_learnt_where_there_are_some(bench: Bench) -> None:
    marks = _marks(bench)
    _begin(bench, kind="model", base=MODEL, model="m", user="u")
    assert marks.learnt == []
    _begin(bench, kind="model", base=MODEL, model="m", api_key=SECRET)
    assert marks.learnt == [(MODEL, {"model": "m", "api_key": SECRET})]


def test_a_state_is_written_and_compared_without_its_secrets_and_given_whole(bench: Bench) -> None:
    _marks(bench)
    assert bench.engine.state(bench.session.root, "route", [SECRET], ()) == [SECRET]
    assert bench.payload("val") == [MARK]
    fields: Tree = {"value": [MARK]}
    assert bench.last()["key"] == request_key(
        bytes(32), "state/1", {"type": "state", "name": "route", "fields": fields}
    )
    bench.engine.deliver(Arrival("timer"))


# -- what a guard stopped, and what is in no entry of its own ---------------------------------------------------------


def test_a_run_that_its_guard_stopped_ends_failed_with_that(bench: Bench) -> None:
    stopped = UnrecordedEffect("agent code may not write")
    bench.engine.failure = stopped
    for _ in range(2):
        with pytest.raises(UnrecordedEffect) as caught:
            bench.engine.judge()
        assert caught.value is stopped
        assert bench.engine.failure is stopped
        assert bench.kinds == ["start", "end"]
    assert bench.last()["status"] == "failed"
    assert bench.payload("err") == encode(stopped)


def test_a_verdict_on_how_such_a_run_ends_goes_before_it(bench: Bench) -> None:
    bench.engine.failure = UnrecordedEffect("agent code may not write")
    bench.source.raises = verdict = Diverged("it ended otherwise")
    with pytest.raises(Diverged) as caught:
        bench.engine.judge()
    assert caught.value is verdict
    kept: object = bench.engine.failure
    assert kept is verdict


def test_any_other_failure_is_raised_as_it_is(bench: Bench) -> None:
    bench.engine.judge()
    bench.engine.failure = StoreFailed("the disk is full")
    with pytest.raises(StoreFailed):
        bench.engine.judge()
    assert bench.kinds == ["start"]


def test_what_is_in_no_entry_of_its_own_is_written_before_the_end(bench: Bench) -> None:
    marks: list[tuple[str, object, str | None]] = [("gap", {"x": 1}, "effect"), ("note", "seen", None)]
    told: Any = SimpleNamespace(marks=lambda: iter(marks))
    bench.engine.unrecorded = told
    bench.engine.finish("completed", 1)
    assert bench.kinds == ["start", "gap", "note", "end"]
    gap, note, _ = bench.tape.journal.entries[1:]
    assert (gap["why"], bench.tape.journal.tree(str(gap["val"]))) == ("effect", {"x": 1})
    assert ("why" in note, bench.tape.journal.tree(str(note["val"]))) == (False, "seen")


def test_a_state_is_compared_as_it_is_and_written_without_its_secrets(bench: Bench) -> None:
    _marks(bench)
    seen: list[Any] = []
    source: Any = bench.source
    source.state = seen.append
    assert bench.engine.state(bench.session.root, "s", [SECRET], ()) == [SECRET]
    assert (seen[0].tree, seen[0].made) == ([MARK], [SECRET])
    assert bench.payload("val") == [MARK]
