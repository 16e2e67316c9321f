"""Effects of plain code on replay: refused, and named with their line."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from agentloom.errors import Diverged, UnrecordedEffect
from agentloom.replay.refusal import Refusing, effect_finding, environment_finding
from agentloom.replay.report import CallRef
from agentloom.replay.source import ReplaySource
from agentloom.runtime.effects import READS, Effect
from tests.replay.benches import record, replaying
from tests.replay.sources import SYNC, check
from tests.runtime.fakes import Bench

READ = min(READS)


def test_an_effect_of_plain_code_is_refused_and_named(program: Any, tmp_path: Any) -> None:
    target = tmp_path / "written.txt"
    write = f"    import pathlib\n    pathlib.Path({str(target)!r}).write_text('x')\n    refund(40)"
    source = SYNC.replace("    refund(40)", write).replace("@agent\n", '@agent(guard="off")\n')
    trace = program.record(source, "q")
    target.unlink()
    report = program.replay(trace)
    check(report, "diverged", "extra", "effect")
    assert not target.exists()
    assert "agent.py:24" in str(report)


# -- the refusing itself ----------------------------------------------------------------------------------------------

WRITE = Effect("file write", "opens 'x' to write to it", "agent.py:7 run")


def _refusing(
    act: Callable[[Bench], object] = lambda bench: None, **end: Any
) -> tuple[ReplaySource, Refusing]:
    source, session = replaying(record(act, **end))
    refusing = Refusing(source)
    refusing.session = session
    return source, refusing


def test_findings_say_what_where_and_why() -> None:
    finding = effect_finding(WRITE)
    assert (finding.cls, finding.reason) == ("extra", "effect")
    assert finding.call == CallRef("", "effect", "file write", None, "agent.py:7 run")
    assert finding.message == (
        "Refused: the code opens 'x' to write to it, outside every host call; it is not in the trace. "
        "Move it into a tool."
    )
    allowed = effect_finding(WRITE, "a cache")
    assert "which was allowed when recorded (a cache); a replay does not do it again" in allowed.message
    variable = environment_finding("HOME", "agent.py:8 run")
    assert (variable.cls, variable.reason) == ("extra", "effect")
    assert variable.call == CallRef("", "env", "HOME", None, "agent.py:8 run")
    assert variable.message.startswith("The code reads HOME, which it did not read when recorded")


@pytest.mark.parametrize("reason", [None, "a cache"])
def test_an_effect_is_the_verdict_and_the_end_of_the_run(reason: str | None) -> None:
    source, refusing = _refusing()
    with pytest.raises(Diverged) as caught:
        refusing.attempt(WRITE) if reason is None else refusing.allowed(WRITE, reason)
    assert source.finding == effect_finding(WRITE, reason)
    assert refusing.session is not None
    assert refusing.session.engine.failure is caught.value


def test_a_failure_that_came_first_stays() -> None:
    _, refusing = _refusing()
    assert refusing.session is not None
    refusing.session.engine.failure = first = Diverged("first")
    with pytest.raises(Diverged):
        refusing.attempt(WRITE)
    assert refusing.session.engine.failure is first


def test_effects_while_the_program_is_imported_are_refused_too() -> None:
    source, refusing = _refusing()
    refusing.session = None
    with pytest.raises(Diverged):
        refusing.attempt(WRITE)
    assert source.finding is not None


def test_reads_are_let_through_and_remembered_up_to_a_bound() -> None:
    source, refusing = _refusing()
    for number in range(250):
        for _ in range(2):
            refusing.attempt(Effect(READ, f"reads {number}", "agent.py:7 run"))
            refusing.allowed(Effect(READ, f"reads {number}", "agent.py:7 run"), "why")
    assert [effect.what for effect in refusing.reads] == [f"reads {number}" for number in range(200)]
    assert set(refusing.reads.values()) == {None}
    assert Refusing(source).session is None
    assert source.finding is None


def _stopped(error: BaseException) -> tuple[ReplaySource, Refusing]:
    return _refusing(end="failed", output=error)


def test_a_run_that_its_guard_stopped_is_stopped_by_the_same_error() -> None:
    error = UnrecordedEffect("refused")
    source, refusing = _stopped(UnrecordedEffect("refused"))
    assert refusing.refused(WRITE, error) is error
    assert source.finding is None


@pytest.mark.parametrize("end", [{}, {"end": None}, {"end": "failed", "output": ValueError("x")}])
def test_a_run_that_ended_otherwise_is_not(end: dict[str, Any]) -> None:
    source, refusing = _refusing(**end)
    assert isinstance(refusing.refused(WRITE, UnrecordedEffect("refused")), Diverged)
    assert source.finding == effect_finding(WRITE)


@pytest.mark.parametrize(
    ("status", "tree"),
    [
        ("completed", {"$error": {"type": "agentloom.errors:UnrecordedEffect"}}),
        ("failed", {"$error": {"type": "builtins:ValueError"}}),
        ("failed", {"$error": "x"}),
        ("failed", {"error": {"type": "agentloom.errors:UnrecordedEffect"}}),
        ("failed", "text"),
        ("failed", None),
    ],
)
def test_only_that_error_counts(status: str, tree: Any) -> None:
    source, refusing = _refusing()
    stands_in: Any = SimpleNamespace(end={"status": status}, output=lambda: tree)
    source.recording = stands_in
    assert isinstance(refusing.refused(WRITE, UnrecordedEffect("refused")), Diverged)
