"""agentloom's own code does not ask through the names that the guard watches: each question would be judged."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agentloom import agent, tool
from agentloom.runtime import guard_wraps


@tool(effect="read")
def plain(n: int) -> int:
    return n


@tool(effect="read")
async def awaited(n: int) -> int:
    return n


@agent
def sync_agent(count: int) -> int:
    return sum(plain(n) for n in range(count))


@agent
async def async_agent(count: int) -> int:
    return sum([await awaited(n) for n in range(count)])


def questions(work: Callable[[], object]) -> int:
    """How often ``work`` calls what stands in for one of Python's functions of ``guard_wraps``."""
    asked = 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal asked
        asked += event == "call" and frame.f_code.co_filename == guard_wraps.__file__

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return asked


@pytest.mark.parametrize("way", ["sync", "async"])
def test_more_calls_ask_no_more_questions(tmp_path: Path, way: str) -> None:
    def run(count: int) -> None:
        if way == "sync":
            sync_agent.run(count, store=tmp_path / f"{way}{count}")
        else:
            asyncio.run(async_agent.arun(count, store=tmp_path / f"{way}{count}"))

    run(1)
    few, many = questions(lambda: run(5)), questions(lambda: run(105))
    assert many - few < 20  # the outer loop asks a little, as often as it has its turn
