"""Effects of plain code on replay: refused, and named with their line."""

from __future__ import annotations

from typing import Any

from tests.replay.sources import SYNC, check


def test_an_effect_of_plain_code_is_refused_and_named(program: Any, tmp_path: Any) -> None:
    target = tmp_path / "written.txt"
    write = f"    import pathlib\n    pathlib.Path({str(target)!r}).write_text('x')\n    refund(40)"
    source = SYNC.replace("    refund(40)", write)
    trace = program.record(source, "q")
    target.unlink()
    report = program.replay(trace)
    check(report, "diverged", "extra", "effect")
    assert not target.exists()
    assert "agent.py:24" in str(report)
