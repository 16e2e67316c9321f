"""Neighbours of case 2: fresh ids within the arguments of tools, in bodies of requests, and beside them."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

import agentloom
from agentloom import agent, profile, sync, tool
from agentloom.store import MemoryStore

_random = itertools.count(1)


def fresh() -> str:
    """A UUID of version 4 that nothing recorded: as C code makes them."""
    return str(uuid.UUID(int=next(_random) * 0x5DEECE66D1234567890ABCDEF12345 % 2**128, version=4))


@tool
def ticket(title: str, request_id: str) -> str:
    return f"opened {title}"


@tool(noted=["request_id"])
def careful(title: str, request_id: str) -> str:
    return f"opened {title}"


def test_a_fresh_id_in_an_argument_is_a_leak_and_the_report_says_both_ways_out() -> None:
    @agent
    def opens() -> str:
        return ticket("refund", fresh())

    report = opens.run(store=MemoryStore()).replay(check=False)
    assert report.finding is not None
    assert report.finding.cls == "leak"
    text = str(report)
    assert "args.request_id" in text
    assert "a version 4 UUID" in text
    assert '@tool(noted=["request_id"]) if it does not matter' in text
    assert len(text) < 1200


def test_said_to_be_noted_it_is_reported_and_no_miss() -> None:
    @agent
    def opens() -> str:
        return careful("refund", fresh())

    report = opens.run(store=MemoryStore()).replay()
    assert report.verdict == "identical except noted"
    assert [item.path for item in report.noted[0].comparison.items] == ["args.request_id"]


class Echo:
    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"content": "ok"}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.complete_sync(request)

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _echo() -> Iterator[None]:
    before = agentloom.set_backend(Echo())
    yield
    agentloom.set_backend(before)


def _called(arguments: str, call: str = "call_abcdefgh") -> list[dict[str, Any]]:
    made = {"id": call, "type": "function", "function": {"name": "ticket", "arguments": arguments}}
    return [
        {"role": "user", "content": "open one"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": call, "content": "opened"},
    ]


def test_an_id_inside_of_the_text_of_arguments_is_no_id_of_the_frameworks() -> None:
    """What a model is told that it said is load-bearing: renaming ids in it would hide a changed prompt."""

    @agent
    def tells() -> str:
        return str(sync.model("m", _called(f'{{"request_id": "{fresh()}"}}')))

    report = tells.run(store=MemoryStore()).replay(check=False)
    assert report.finding is not None
    assert report.finding.comparison is not None
    assert [item.path for item in report.finding.comparison.items] == [
        "messages[1].tool_calls[0].function.arguments"
    ]
    assert report.finding.cls == "leak"


def test_a_rule_may_say_that_it_does_not_count() -> None:
    rule = profile("agentloom.model/1", noted=["messages[].tool_calls[].function.arguments"])

    @agent(profiles=[rule])
    def tells() -> str:
        return str(sync.model("m", _called(f'{{"request_id": "{fresh()}"}}', f"call_{fresh()[:8]}")))

    report = tells.run(store=MemoryStore()).replay()
    assert report.verdict == "identical except noted"
    assert {item.path for item in report.noted[0].comparison.items} == {
        "messages[1].tool_calls[0].id",
        "messages[1].tool_calls[0].function.arguments",
        "messages[2].tool_call_id",
    }


def test_a_fresh_id_in_a_field_of_a_request_names_the_profile_to_change() -> None:
    @agent
    def asks() -> str:
        return str(sync.model("m", "hello", extra_body={"trace": {"span": fresh()}}))

    text = str(asks.run(store=MemoryStore()).replay(check=False))
    assert 'or profile("agentloom.model/1", noted=["extra_body.trace.span"]) if it does not matter' in text
