"""Loading a program defines what it defines and starts no run."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from agentloom.runtime.loading import RunWhileLoading, loading, refuse_while_loading
from agentloom.store import open_store


def test_a_run_at_the_top_level_ends_the_loading_quietly() -> None:
    defined: list[str] = []
    with loading():
        defined.append("above")
        refuse_while_loading("support")
        defined.append("below")
    assert defined == ["above"]


def test_outside_loading_nothing_is_refused() -> None:
    refuse_while_loading("support")
    with loading():
        pass
    refuse_while_loading("support")


def test_other_errors_of_the_program_pass() -> None:
    with pytest.raises(ZeroDivisionError), loading():
        _ = 1 / 0


def test_an_except_exception_of_the_program_does_not_swallow_it() -> None:
    reached: list[str] = []
    with loading():
        try:
            refuse_while_loading("support")
        except Exception:  # noqa: BLE001 - what a program might write
            reached.append("swallowed")
        reached.append("went on")
    assert reached == []
    assert not issubclass(RunWhileLoading, Exception)


@pytest.mark.parametrize(
    "line", ["support.run(1)", "asyncio.run(support.arun(1))", "Workflow().step('a', fn=len).run('x')"]
)
def test_a_program_that_runs_its_agent_when_imported_runs_nothing(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path / "store"))
    path = tmp_path / "program.py"
    path.write_text(
        "import asyncio\nfrom agentloom import Workflow, agent\n\n"
        "@agent\nasync def support(x):\n    return x\n\n"
        f"try:\n    trace = {line}\nexcept Exception:\n    trace = None\n"
    )
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with loading():
        spec.loader.exec_module(module)
    assert open_store().runs() == []
    assert asyncio.run(module.support(2)) == 2
    assert not hasattr(module, "trace")
