"""What is called outside of runs, in methods that are no runs: told once for each, or refused."""

from __future__ import annotations

import logging

import pytest

from agentloom.errors import Diverged
from agentloom.runtime import unrecorded
from agentloom.runtime.unrecorded import Unrecorded, entered_unrecorded, refuse_unrecorded


def test_it_is_told_once_for_each_method_and_call(caplog: pytest.LogCaptureFixture) -> None:
    unrecorded._told.clear()
    assert not refuse_unrecorded("a call")
    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        for what in ("bot.a()", "bot.b()", "bot.a()"):
            with entered_unrecorded(Unrecorded(what, "record it", refuses=False)):
                assert refuse_unrecorded("a call of x")
                assert refuse_unrecorded("a call of x")
    assert [record.getMessage() for record in caplog.records] == [
        f"a call of x belongs to no run: {what} is not recorded (told once). To change it: record it"
        for what in ("bot.a()", "bot.b()")
    ]
    assert not refuse_unrecorded("a call")


def test_it_is_refused_with_the_call_it_was_for() -> None:
    with (
        entered_unrecorded(Unrecorded("bot.a()", "record it", refuses=True)),
        pytest.raises(
            Diverged, match=r"^a call of x was refused: it was made by bot\.a\(\), .* To change it: record it"
        ),
    ):
        refuse_unrecorded("a call of x")
