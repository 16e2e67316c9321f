"""A report of a replay, part by part: its class, its cause, the calls before, what to do next, harmless changes."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentloom import Trace, agent, tool
from agentloom.errors import Diverged, PayloadMissing
from agentloom.format.digests import request_key
from agentloom.format.placeholders import placeholder
from agentloom.format.values import Tree
from agentloom.replay import replayer
from agentloom.replay.cause import Cause, CodeFacts
from agentloom.replay.code import ModuleSource
from agentloom.replay.fields import Comparison, Difference, compare
from agentloom.replay.leaks import ALL_LEAKS, past_the_guard
from agentloom.replay.recording import Recording, facts_of
from agentloom.replay.refusal import Refusing, environment_finding
from agentloom.replay.replayer import (
    _as_kept,
    _cause,
    _classified,
    _fits,
    _gap_notes,
    _harmless,
    _leading,
    _next,
    _order_leak,
    _read,
    _target,
    _way_to_note,
    conclude,
    current_facts,
    run_agent,
    session_for,
)
from agentloom.replay.report import CallRef, Finding, Noted
from agentloom.replay.source import ReplaySource
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.calls import Arrival, CallSpec
from agentloom.runtime.guard import OFF, Guard
from agentloom.runtime.identity import code_identity
from agentloom.store import MemoryStore
from tests.replay.benches import answered, find, record, replaying
from tests.runtime.fakes import Bench

REF = CallRef("root/probe#1", "tool", "find", 1)


def changed(*items: Difference, reason: str = "request", cls: Any = "changed") -> Finding:
    return Finding(cls, REF, "", Comparison(items, len(items)), reason=reason)


NUMBER = Difference("args.n", "changed", 1, 2)


# -- the class --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "kind", "cls"),
    [
        (changed(NUMBER), "leak", "leak"),
        (changed(NUMBER), "unknown", "leak"),
        (changed(NUMBER, reason="state"), "leak", "leak"),
        (changed(NUMBER, reason="timer"), "leak", "changed"),
        (changed(NUMBER), "code", "changed"),
        (changed(NUMBER), "packages", "changed"),
        (changed(NUMBER), None, "changed"),
        (changed(), "leak", "changed"),
        (Finding("changed", REF, "", None, reason="request"), "leak", "changed"),
        (changed(NUMBER, cls="extra"), "leak", "extra"),
        (changed(Difference("p", "changed", f"{placeholder(1)}x", "y")), "code", "redacted"),
        (changed(NUMBER, Difference("p", "changed", "x", [placeholder(1)])), "leak", "redacted"),
        (changed(Difference("p", "changed", placeholder(1), "y"), cls="output"), "leak", "output"),
    ],
)
def test_a_change_is_a_leak_where_the_code_is_the_same(finding: Finding, kind: str | None, cls: str) -> None:
    found = _classified(finding, None if kind is None else Cause(kind))
    assert found.cls == cls
    if cls == "redacted":
        assert (
            found.message
            == "A value that was redacted when recorded was sliced, measured or hashed by the code."
        )
    else:
        assert found.message == finding.message


# -- what to do about a leak ------------------------------------------------------------------------------------------


def _asked(bench: Bench) -> None:
    def make(kind: str, name: str, profile: str, **request: Any) -> None:
        spec = CallSpec(kind, name, request, profile)
        bench.engine.deliver(Arrival("outcome", bench.engine.begin(spec, bench.session.root)))

    make("tool", "find", "tool/1", args={"n": 1})
    make("model", "m", "agentloom.model/1", model="m", messages=[], metadata={"a": 1})
    make("http", "GET", "http/1", method="GET", url="u")
    make("now", "time", "plain/1")


@pytest.mark.parametrize(
    ("number", "path", "words"),
    [
        (1, "args.n", '@tool(noted=["n"])'),
        (1, "args.n.deep-er", '@tool(noted=["n.deep-er"])'),
        (1, "args", ""),
        (1, "other.n", ""),
        (2, "metadata.a", 'profile("agentloom.model/1", noted=["metadata.a"])'),
        (2, "model", ""),
        (2, "messages[0].content", ""),
        (2, "metadata.1a", ""),
        (3, "json.id", 'profile("http/1", noted=["json.id"])'),
        (4, "a.b", ""),
        (9, "args.n", ""),
        (1, None, ""),
    ],
)
def test_how_a_field_that_leaks_is_noted(number: int, path: str | None, words: str) -> None:
    source = ReplaySource(record(_asked))
    finding = changed(NUMBER)
    object.__setattr__(finding, "call", CallRef(f"root/probe#{number}", "x", "y"))
    assert _way_to_note(source, finding, Cause("leak", leak_path=path)) == words


def test_a_finding_without_a_call_has_no_field_to_note() -> None:
    finding = Finding("output", None, "")
    assert _way_to_note(ReplaySource(record(_asked)), finding, Cause("leak", leak_path="args.n")) == ""


@pytest.mark.parametrize(("env", "then"), [({"hash_seed": "7"}, "7"), ({}, "random"), (None, "random")])
def test_an_order_that_leaks_names_both_hash_seeds(
    env: Any, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording: Any = SimpleNamespace(payload=lambda name: env if name == "env" else 5)
    monkeypatch.setenv("PYTHONHASHSEED", "3")
    leak = _order_leak(recording)
    assert (leak.kind, leak.guess) == ("set order", True)
    assert leak.what == f"an order taken from a set (hash seed {then} when recorded, 3 now)"
    monkeypatch.delenv("PYTHONHASHSEED")
    assert _order_leak(recording).what.endswith(f"(hash seed {then} when recorded, random now)")
    assert "sorted(...)" in leak.fix
    assert "a set" in leak.likely


def _caused(finding: Finding, then: str = "A = 1\n", now: str = "A = 1\n") -> Cause | None:
    source = ReplaySource(record(_asked))
    source.recording._facts = CodeFacts({"agent": ModuleSource(then, "agent.py")})
    return _cause(source, finding, CodeFacts({"agent": ModuleSource(now, "agent.py")}))


@pytest.mark.parametrize("reason", ["recording ends", "effect"])
def test_a_crash_and_an_effect_need_no_cause(reason: str) -> None:
    assert _caused(changed(NUMBER, reason=reason)) is None


def test_the_cause_is_looked_for_at_the_call_where_it_is_now_and_else_where_it_was() -> None:
    program = "def used(): return 1\ndef place():\n    used()\ndef far(): return 1\n"
    edited = program.replace("return 1", "return 2")
    now = CallRef("root/probe#1", "tool", "find", 1, "agent.py:3 place", "agent.py:9 far")
    then = CallRef("root/probe#1", "tool", "find", 1, None, "agent.py:3 place")
    nowhere = CallRef("root/probe#1", "tool", "find", 1, "?", None)
    for ref, relevant in ((now, True), (then, True), (nowhere, False), (None, False)):
        cause = _caused(
            Finding("changed", ref, "", compare({"n": 5}, {"n": 6}), reason="request"), program, edited
        )
        assert cause is not None
        assert (cause.kind, cause.changes[0].title, cause.relevant) == ("code", "used()", relevant)


def test_another_order_without_a_change_of_code_is_an_order_that_leaks() -> None:
    cause = _caused(Finding("reordered", REF, "", reason="order"))
    assert cause is not None
    assert (cause.kind, cause.leak is not None and cause.leak.kind) == ("leak", "set order")
    edited = _caused(Finding("reordered", REF, "", reason="order"), now="A = 2\n")
    assert edited is not None
    assert (edited.kind, edited.leak) == ("code", None)
    extra = _caused(Finding("extra", REF, "", reason="unrecorded"))
    assert extra is not None
    assert (extra.kind, extra.leak) == ("unknown", None)


UUIDS = "0d2d64ce-fe36-47f0-b3ca-78f07d55ce69", "87add5c7-d7e6-4070-b3ca-bbc3a45e9bbf"


def test_a_leak_says_how_its_field_may_be_noted() -> None:
    cause = _caused(changed(Difference("args.n", "changed", *UUIDS)))
    assert cause is not None
    assert cause.leak is not None
    assert cause.leak.fix.endswith(', or @tool(noted=["n"]) if it does not matter')
    whole = _caused(changed(Difference("args", "changed", *UUIDS)))
    assert whole is not None
    assert whole.leak is not None
    assert "if it does not matter" not in whole.leak.fix


# -- words ------------------------------------------------------------------------------------------------------------


def _told(*kinds: tuple[str, str], at: str | None = None) -> Any:
    def act(bench: Bench) -> None:
        for kind, name in kinds:
            bench.engine.deliver(
                Arrival("outcome", bench.engine.begin(CallSpec(kind, name, {}), bench.session.root))
            )

    source = ReplaySource(record(act))
    source._at = len(source.recording.steps)
    source.finding = None if at is None else Finding("changed", CallRef(at, "tool", "x"), "")
    return source


def _names(source: Any) -> list[str]:
    return [ref.name for ref in _leading(source)]


def test_the_last_three_calls_before_it_are_told_without_ambient_ones() -> None:
    kinds = [("tool", "a"), ("now", "t"), ("tool", "b"), ("model", "c"), ("random", "r"), ("tool", "d")]
    source = _told(*kinds)
    assert _names(source) == ["b", "c", "d"]
    source._at = 5  # before the outcome of "b"
    assert _names(source) == ["a", "b"]
    assert _names(_told(*kinds, at="root/probe#6")) == ["a", "b", "c"]
    assert _names(_told(*kinds, at="root/probe#7")) == ["b", "c", "d"]
    quiet = ["now", "random", "uuid", "env", "sleep", "state"]
    assert _names(_told(*((kind, kind) for kind in quiet))) == ["env", "sleep", "state"]
    assert _names(_told()) == []


def test_what_to_do_next() -> None:
    recording = record(_asked)
    third = CallRef("root/probe#3", "http", "GET")
    assert _next(recording, Finding("changed", third, ""), "abcd") == (
        ("agentloom show abcd 3", "the recorded request and answer"),
    )
    unknown = CallRef("root/probe#33", "http", "GET")
    for call in (unknown, None):
        assert _next(recording, Finding("extra", call, ""), "abcd") == (
            ("agentloom show abcd", "the recorded calls"),
        )
    assert _next(recording, Finding("extra", third, "", reason="effect"), "abcd") == ()


def test_all_leaks_of_the_program_are_looked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = record(_asked)
    shown = ("agentloom show abcd", "the recorded calls")
    monkeypatch.setattr(replayer, "_target", lambda recording: "a.py:run")
    assert _next(recording, Finding("leak", None, ""), "abcd") == (
        ("agentloom check a.py:run", ALL_LEAKS),
        shown,
    )
    assert _next(recording, Finding("changed", None, ""), "abcd") == (shown,)
    monkeypatch.setattr(replayer, "_target", lambda recording: None)
    assert _next(recording, Finding("leak", None, ""), "abcd") == (shown,)


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        ({"kind": "script", "file": "s.py"}, "s.py"),
        ({"kind": "script", "file": 5}, None),
        ({"file": "a.py", "qualname": "run", "module": "a"}, "a.py:run"),
        ({"file": None, "qualname": "run", "module": "a"}, "a:run"),
        ({"file": "a.py", "qualname": "f.<locals>.run"}, None),
        ({"file": "a.py", "qualname": 5}, None),
        (None, None),
    ],
)
def test_how_a_command_names_the_program(entry: Any, target: str | None) -> None:
    recording: Any = SimpleNamespace(payload=lambda name: {"entry": entry} if name == "code" else 5)
    assert _target(recording) == target


def test_a_trace_without_facts_of_its_code_has_no_target() -> None:
    recording: Any = SimpleNamespace(payload=lambda name: None)
    assert _target(recording) is None


def _changes(then: str, now: str, *tools: str) -> list[str]:
    def act(bench: Bench) -> None:
        for name in tools:
            answered_tool = bench.begin(name)
            bench.engine.deliver(Arrival("outcome", answered_tool))

    recording = record(act)
    recording._facts = CodeFacts({"m": ModuleSource(then, "m.py")})
    return list(_harmless(recording, CodeFacts({"m": ModuleSource(now, "m.py")})))


def test_changes_of_code_that_made_no_difference_are_told() -> None:
    then = "".join(f"def f{n}(): return 1\n" for n in range(5))
    assert _changes(then, then) == []
    assert _changes(then, then.replace("def f0(): return 1", "def f0(): return 2")) == [
        "code changed: f0(); it makes no difference to this run"
    ]
    everything = then.replace("return 1", "return 2")
    assert _changes(then, everything) == [
        "code changed: f0(), f1(), f2() and 2 more; it makes no difference to this run"
    ]
    three = "".join(f"def f{n}(): return 1\n" for n in range(3))
    assert _changes(three, three.replace("return 1", "return 2")) == [
        "code changed: f0(), f1(), f2(); it makes no difference to this run"
    ]
    assert _changes(then, everything, "f1", "f3") == [
        "code changed: f1(), f3(); no tool runs on replay, so this is untried",
        "code changed: f0(), f2(), f4(); it makes no difference to this run",
    ]
    four = "".join(f"def f{n}(): return 1\n" for n in range(4))
    assert _changes(four, four.replace("return 1", "return 2")) == [
        "code changed: f0(), f1(), f2() and 1 more; it makes no difference to this run"
    ]
    method = "class Box:\n    def f1(self): return 1\n"
    [told] = _changes(method, method.replace("return 1", "return 2"), "f1")
    assert told.endswith("no tool runs on replay, so this is untried")
    assert _changes('def f():\n    """A."""\n', 'def f():\n    """B."""\n') == []


def test_gaps_are_told_up_to_three() -> None:
    recording: Any = SimpleNamespace(gaps=[{"seq": n, "why": f"w{n}"} for n in range(5)])
    assert list(_gap_notes(recording)) == [
        f"the trace has a gap at entry {n} (w{n}): not replayable past it" for n in range(3)
    ]


def test_a_recorded_file_is_read_below_the_root_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "m.py").write_text("é = 1\n", encoding="utf-8")
    (root / "bad.py").write_bytes(b"\xff")
    (tmp_path / "rootother").mkdir()
    (tmp_path / "rootother" / "m.py").write_text("x = 1\n", encoding="utf-8")
    assert _read(str(root), "pkg/m.py") == ModuleSource("é = 1\n", "pkg/m.py")
    assert _read(f"{root}{os.sep}", "pkg/m.py") == ModuleSource("é = 1\n", "pkg/m.py")
    for file in ("../rootother/m.py", "gone.py", "bad.py", str(tmp_path / "rootother" / "m.py"), "."):
        assert _read(str(root), file) is None


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_replay_that_neither_ended_nor_diverged_is_no_verdict() -> None:
    source, _ = replaying(record(lambda bench: answered(bench, "a")))
    with pytest.raises(Diverged, match="stopped before the agent ended"):
        conclude(source, CodeFacts())


def test_an_identical_replay_says_what_was_compared_and_noted() -> None:
    recording = record(lambda bench: answered(bench, "a"))
    recording.gaps.append({"seq": 7, "why": "store"})
    source, session = replaying(recording)
    call = find(session, "a")
    session.engine.deliver(source.inline(call, lambda: None))
    session.engine.finish("completed", None)
    source.remarks["a remark"] = None
    report = conclude(source, recording.code_facts(), compared=("output", "x"), seconds=2.5, notes=("first",))
    assert (report.verdict, report.run, report.agent, report.compared, report.seconds) == (
        "identical", recording.run, "probe", ("output", "x"), 2.5,
    )  # fmt: skip
    assert report.notes[:3] == (
        "first",
        "a remark",
        "the trace has a gap at entry 7 (store): not replayable past it",
    )
    assert (report.counts, report.finding, report.noted, report.guard) == (
        source.counts,
        None,
        (),
        recording.guard,
    )
    noted = Noted(REF, Comparison((NUMBER,), 1))
    source.noted.append(noted)
    again = conclude(source, recording.code_facts())
    assert (again.verdict, again.noted, again.compared, again.seconds) == (
        "identical except noted", (noted,), ("output",), None,
    )  # fmt: skip


def test_a_divergence_says_where_why_and_what_next() -> None:
    def two(bench: Bench) -> None:
        answered(bench, "a")
        answered(bench, "b")

    recording = record(two)
    source, session = replaying(recording)
    session.engine.deliver(source.inline(find(session, "a"), lambda: None))
    with pytest.raises(Diverged):
        source.inline(find(session, "x"), lambda: None)
    report = conclude(source, recording.code_facts(), seconds=1.5, notes=("first",))
    assert (report.verdict, report.counts, report.seconds, report.notes) == (
        "diverged",
        source.counts,
        1.5,
        ("first",),
    )
    assert (report.run, report.agent, report.guard) == (recording.run, "probe", recording.guard)
    assert report.finding is not None
    assert report.finding.cls == "leak"
    assert report.cause is not None
    assert [ref.id for ref in report.leading] == ["root/probe#1"]
    assert ("agentloom show " + recording.run[-4:] + " 2", "the recorded request and answer") in report.next
    named = conclude(source, recording.code_facts(), name="f.loom", compared=("stdout",))
    assert ("agentloom show f.loom 2", "the recorded request and answer") in named.next
    assert named.compared == ("stdout",)


def test_a_session_replays_as_the_run_that_was_recorded() -> None:
    recording = record(lambda bench: answered(bench, "a"))
    source = ReplaySource(recording)
    session = session_for(recording, source, "/")
    assert (session.run_id, session.agent, session.seed) == (recording.run, "probe", 3)
    assert session.engine.places.root == "/"
    assert session.engine.source is source
    call = find(session, "a")
    assert call.key == recording.calls[0].key
    erased: Recording = record(lambda bench: answered(bench, "a"))
    erased.nonce = None
    blind = session_for(erased, ReplaySource(erased), "/")
    wanted: Tree = {"type": "tool", "name": "find", "fields": {"q": "a"}}
    assert find(blind, "a").key == request_key(bytes(32), "plain/1", wanted)


def test_what_a_session_is_guarded_by_is_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    guard = copy.copy(OFF)

    def guards(*given: Any, goes_on: bool) -> Guard:
        assert not goes_on
        asked.extend(given)
        return guard

    monkeypatch.setattr(replayer, "guard_for_replay", guards)
    monkeypatch.setattr(replayer, "rules_of_record", lambda policy: {"of": policy})
    monkeypatch.setattr(replayer, "Redactor", lambda rules, given: (rules, given))
    recording = record(lambda bench: None)
    payloads = {"policy": {"p": 1}, "env": {"e": 1}}
    monkeypatch.setattr(Recording, "payload", lambda self, name: payloads.get(name))
    monkeypatch.setattr(Recording, "secrets", lambda self: {1: "secret"})
    source = ReplaySource(recording)
    session = session_for(recording, source, "/")
    policy, clock, env, variables, unknown = asked
    assert (policy, clock, env()) == ({"p": 1}, recording.start["clock"], {"e": 1})
    assert variables == recording.variables
    assert session.guard is guard
    redactor: Any = session.engine.redactor
    assert redactor == ({"of": {"p": 1}}, {1: "secret"})
    failure = unknown("HOME", "agent.py:8 run")
    assert isinstance(failure, Diverged)
    assert session.engine.failure is failure
    assert source.finding == environment_finding("HOME", "agent.py:8 run")
    unknown("PATH", "agent.py:9 run")
    assert session.engine.failure is failure


def test_effects_of_a_watched_session_go_to_its_refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded: list[int] = []
    monkeypatch.setattr(replayer, "guard_process", lambda: guarded.append(1))
    source, session = replaying(record(lambda bench: None))
    refusing = Refusing(source)
    replayer.watch_over(session, refusing)
    assert (refusing.session, session.effects, guarded) == (session, refusing, [1])


def _ran(function: Any, **state: Any) -> Any:
    source, session = replaying(record(lambda bench: None))
    for name, value in state.items():
        setattr(source, name, value)
    run_agent(session, source, AgentFunction.of(function), {"args": [1], "kwargs": {"b": 2}})
    return source


def test_what_an_agent_raises_is_raised_unless_a_verdict_explains_it() -> None:
    def breaks(a: int, b: int) -> None:
        raise LookupError(a, b)

    with pytest.raises(LookupError, match=r"\(1, 2\)|1, 2"):
        _ran(breaks, finished=lambda status, tree: None)
    source = _ran(breaks)
    assert source.finding is not None
    assert source.finding.reason == "status"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_passed_on_unless_it_was_recorded(error: type[BaseException]) -> None:
    def stops(a: int, b: int) -> None:
        raise error

    with pytest.raises(error):
        _ran(stops, finding=changed(NUMBER), finished=lambda status, tree: None)
    assert _ran(stops, complete=True, finished=lambda status, tree: None).complete


def test_what_cannot_be_served_is_raised() -> None:
    gone = PayloadMissing("erased")
    with pytest.raises(PayloadMissing) as caught:
        _ran(lambda a, b: None, unusable=gone, finished=lambda status, tree: None)
    assert caught.value is gone


# -- a replay as a whole ----------------------------------------------------------------------------------------------


@dataclass
class Order:
    number: int


@tool(effect="read")
def look(number: int) -> int:
    return number


def doubles(order: Order) -> int:
    return look(order.number) * 2


@pytest.fixture
def doubled() -> Trace:
    return agent(doubles).run(Order(4), store=MemoryStore())


def test_a_replay_gives_the_agent_its_input_and_says_how_long_it_took(doubled: Trace) -> None:
    report = replayer.replay(doubled.journal, AgentFunction.of(doubles))
    assert (report.verdict, doubled.output) == ("identical", 8)
    assert report.seconds is not None
    assert 0 < report.seconds < 60


def test_effects_are_refused_unless_the_caller_guards_them(
    doubled: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[tuple[Any, Any]] = []
    monkeypatch.setattr(replayer, "watch_over", lambda session, refusing: watched.append((session, refusing)))
    replayer.replay(doubled.journal, AgentFunction.of(doubles))
    [(session, refusing)] = watched
    assert refusing._source is session.source
    replayer.replay(doubled.journal, AgentFunction.of(doubles), refuse=False)
    assert len(watched) == 1


def test_what_was_noticed_before_the_run_is_in_the_report(
    doubled: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayer, "warm_caches", lambda modules: [f"{len(list(modules))} modules"])
    report = replayer.replay(doubled.journal, AgentFunction.of(doubles))
    assert report.notes[0].endswith(" modules")


def test_the_code_that_is_compared_is_that_of_the_recorded_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reads(root: str, file: str) -> ModuleSource | None:
        read.append(file)
        return _read(root, file)

    monkeypatch.setattr(replayer, "_read", reads)
    function = AgentFunction.of(doubles)
    here = function.module
    recording = record(lambda bench: None)
    beside = Path(__file__).parents[2] / "pyproject.toml"
    place = os.path.relpath(beside, function.root)
    recording._facts = CodeFacts(
        {
            "beside": ModuleSource("old", place),
            here: ModuleSource("old", "elsewhere.py"),
            "by.place": ModuleSource("old", str(facts_of_now(function)[here].file)),
            "gone": ModuleSource("old", "gone.py"),
        }
    )
    facts = current_facts(function, recording)
    now = facts_of_now(function)[here]
    there = ModuleSource(beside.read_text(encoding="utf-8"), place)
    assert dict(facts.modules) == {"beside": there, here: now, "by.place": now}
    assert read == [place, "gone.py"]
    assert facts.interpreter["implementation"]


def facts_of_now(function: AgentFunction) -> Mapping[str, ModuleSource]:
    code: Any = code_identity(function)
    return facts_of(code, None).modules


# -- sources with secrets in them -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fixed", "fits"),
    [
        ("KEY = 'abc'\n", ["KEY = '", "'\n"], True),
        ("KEY = ''\n", ["KEY = '", "'\n"], True),
        ("KEY = 'abc'\nB = 1\n", ["KEY = '", "'\n"], False),
        ("OTHER = 'abc'\n", ["KEY = '", "'\n"], False),
        ("KEY = 'abc", ["KEY = '", "'\n"], False),
        ("a1b2c", ["a", "b", "c"], True),
        ("a1c2b", ["a", "b", "c"], False),
        ("a1,2,", ["a", ",", ","], True),
        ("a1,", ["a", ",", ","], False),
        ("a,b", ["a,", ",b"], False),
        ("abc", ["abc"], False),
        ("ab12c", ["ab", "a", "c"], False),
        ("b1c", ["", "b", "c"], True),
        ("a" + "x" * 20_000 + "b", ["a", "b"], True),
        ("a" + "x" * 20_001 + "b", ["a", "b"], False),
        ("a" + "x" * 20_000 + "b" + "x" * 20_000 + "c", ["a", "b", "c"], True),
        ("a" + "x" * 20_001 + "b1c", ["a", "b", "c"], False),
    ],
)
def test_a_source_is_the_same_but_for_its_secrets(text: str, fixed: list[str], fits: bool) -> None:
    assert _fits(text, fixed) is fits


def test_a_source_with_secrets_is_compared_as_it_is_kept() -> None:
    def kept(recorded: str, now: str) -> ModuleSource:
        return _as_kept(ModuleSource(recorded, "then.py"), ModuleSource(now, "now.py"))

    one, two = placeholder(3), placeholder(7)
    recorded = f"A = '{one}'\nB = '{two}'\nC = 1\n"
    assert kept("C = 1\n", "C = 2\n") == ModuleSource("C = 2\n", "now.py")
    assert kept(recorded, recorded) == ModuleSource(recorded, "now.py")
    assert kept(recorded, "A = 'x'\nB = 'y'\nC = 1\n") == ModuleSource(recorded, "then.py")
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 3
    changed_now = kept(recorded, f"A = '{key}'\nB = '{key}x'\nC = 2\n")
    assert changed_now == ModuleSource(f"A = '{one}'\nB = '{two}'\nC = 2\n", "now.py")
    third = kept(f"A = '{one}'\nC = 1\n", f"A = '{key}'\nB = '{key}x'\nC = 2\n")
    assert third == ModuleSource(f"A = '{one}'\nB = '{placeholder(2)}'\nC = 2\n", "now.py")


def test_a_leak_of_a_guarded_run_came_past_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for guard in ("off", "warn"):
        monkeypatch.setattr(Recording, "guard", guard)
        cause = _caused(changed(Difference("args.n", "changed", *UUIDS)))
        assert cause is not None
        assert cause.leak is not None
        told[guard] = cause.leak
    assert told["warn"].likely == past_the_guard(told["off"]).likely != told["off"].likely
    assert told["warn"].fix.endswith("if it does not matter")


@pytest.mark.parametrize("cls", ["changed", "output", "missing"])
def test_a_value_that_comes_from_a_placeholder_is_told_as_that(
    cls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def derivation(items: Any, secrets: Any) -> str | None:
        asked.append((items, secrets))
        return "its length"

    monkeypatch.setattr(replayer, "derivation", derivation)
    secrets: Any = {1: "secret"}
    finding = changed(NUMBER, reason="value", cls=cls)
    found = _classified(finding, Cause("code"), secrets)
    assert (found.cls, found.reason) == ("redacted", "value")
    assert found.message == (
        "A value that was redacted when recorded was sliced, measured or hashed by the code: its length."
    )
    assert asked == [((NUMBER,), secrets)]
    assert _classified(finding, Cause("code"), {}) == finding
    assert _classified(replace(finding, reason="timer"), Cause("code"), secrets).cls == cls
    assert len(asked) == 1


def test_the_secrets_of_the_trace_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def classified(finding: Finding, cause: Cause | None, secrets: Any, *_: object) -> Finding:
        given.append(secrets)
        return finding

    monkeypatch.setattr(replayer, "_classified", classified)
    source, session = replaying(record(lambda bench: answered(bench, "a")))
    monkeypatch.setattr(Recording, "secrets", lambda self: {1: "secret"})
    with pytest.raises(Diverged):
        source.inline(find(session, "x"), lambda: None)
    conclude(source, CodeFacts())
    assert given == [{1: "secret"}]


def test_a_changed_profile_is_named_by_the_one_that_it_changes() -> None:
    recording = record(_asked)
    recording.calls[2].profile = "http/1+12345678"
    finding = changed(NUMBER)
    object.__setattr__(finding, "call", CallRef("root/probe#3", "x", "y"))
    words = 'profile("http/1", noted=["json.id"])'
    assert _way_to_note(ReplaySource(recording), finding, Cause("leak", leak_path="json.id")) == words
