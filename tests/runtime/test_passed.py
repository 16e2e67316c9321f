"""Calls that belong to no run are counted, and told once a client."""

from __future__ import annotations

import logging

import pytest

from agentloom import agent
from agentloom.runtime.passed import counts, left_out, passes
from agentloom.runtime.scope import run_outside
from agentloom.store import MemoryStore


def test_each_client_is_told_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        for _ in range(3):
            assert passes("tests.Client", "api.example.com")
        assert passes("tests.Other")
    assert counts()["tests.Client"] == 3
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("a call of tests.Client to api.example.com belongs to no run")
    assert said[1].startswith("a call of tests.Other belongs to no run")


def test_what_is_left_out_on_purpose_and_host_work_is_not_told() -> None:
    with left_out():
        assert passes("tests.LeftOut")
    assert run_outside(lambda: passes("tests.Work"))
    assert not {"tests.LeftOut", "tests.Work"} & set(counts())


def test_a_call_in_a_run_does_not_pass() -> None:
    @agent
    def asks() -> bool:
        return passes("tests.Inside")

    assert asks.run(store=MemoryStore()).output is False
    assert "tests.Inside" not in counts()
