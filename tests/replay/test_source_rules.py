"""The profile that a request is compared by: the recorded one of the call, else of another call of that name."""

from __future__ import annotations

from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.changes import Change, in_effect
from tests.replay.benches import record, replaying
from tests.runtime.fakes import Bench

NOTED = Change((("q", "noted"),))
OTHER = Change((("p", "noted"),))
ELSEWHERE = "root/probe#9"
"""No recorded call has this id."""


def _spec(name: str, change: Change | None = None, profile: str = "plain/1") -> CallSpec:
    return CallSpec("tool", name, {"p": 1, "q": 2}, profile, "read", change=change)


def _recorded(bench: Bench) -> None:
    for spec in (_spec("find", NOTED), _spec("find"), _spec("look"), _spec("find", OTHER)):
        bench.engine.begin(spec, bench.session.root)


def _rule(call_id: str, spec: CallSpec) -> tuple[str, ReplaySource]:
    """The name of the profile in effect for a call that the program makes now."""
    source, _ = replaying(record(_recorded))
    return source.recorded_rule(lambda: call_id, spec, in_effect(spec.profile, spec.change)).name, source


def test_a_call_of_an_id_that_was_not_recorded_has_the_profile_of_the_first_of_its_name() -> None:
    changed = in_effect("plain/1", NOTED).name
    assert changed.startswith("plain/1+")
    name, source = _rule(ELSEWHERE, _spec("find"))
    assert name == changed
    (remark,) = source.remarks
    assert remark.startswith("the profile of tool find was ")
    name, source = _rule(ELSEWHERE, _spec("look", NOTED))
    assert name == "plain/1"
    assert len(source.remarks) == 1


def test_a_call_of_a_recorded_id_has_the_profile_of_that_call() -> None:
    assert _rule("root/probe#1", _spec("find"))[0] == in_effect("plain/1", NOTED).name
    assert _rule("root/probe#2", _spec("find", NOTED))[0] == "plain/1"
    assert _rule("root/probe#4", _spec("find"))[0] == in_effect("plain/1", OTHER).name
    other_family = _spec("find", NOTED, "tool/1")
    assert _rule("root/probe#1", other_family)[0] == in_effect("tool/1", NOTED).name


def test_a_profile_changed_since_a_recording_that_has_no_changed_one() -> None:
    source, _ = replaying(record(lambda bench: bench.engine.begin(_spec("find"), bench.session.root)))
    spec = _spec("find", NOTED)
    rule = source.recorded_rule(lambda: "root/probe#1", spec, in_effect("plain/1", NOTED))
    assert rule.name == "plain/1"
    assert len(source.remarks) == 1


def test_a_call_of_another_name_or_family_keeps_its_own() -> None:
    for spec in (_spec("new", NOTED), _spec("find", NOTED, "tool/1")):
        name, source = _rule(ELSEWHERE, spec)
        assert name == in_effect(spec.profile, NOTED).name
        assert not source.remarks


def test_a_profile_that_was_changed_for_every_call_is_the_one_that_counts() -> None:
    source, _ = replaying(record(lambda bench: bench.engine.begin(_spec("find", NOTED), bench.session.root)))
    rule = source.recorded_rule(lambda: "root/probe#1", _spec("find"), in_effect("plain/1", None))
    assert rule.name == in_effect("plain/1", NOTED).name
    assert len(source.remarks) == 1
