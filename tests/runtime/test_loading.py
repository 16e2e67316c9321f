"""Loading a program defines what it defines and starts no run."""

from __future__ import annotations

import pytest

from agentloom.runtime.loading import RunWhileLoading, loading, refuse_while_loading


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
