"""Calls that belong to no run are told, once a client."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import fakeredis
import pytest
import redis

from agentloom import agent, record
from agentloom.runtime import passed
from agentloom.runtime.left_out import left_out
from agentloom.runtime.passed import passes
from agentloom.runtime.scope import run_outside
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider


def test_each_client_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        for _ in range(3):
            assert passes("tests.Client", "api.example.com")
        assert passes("tests.Other")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("a call of tests.Client to api.example.com belongs to no run")
    assert said[1].startswith("a call of tests.Other belongs to no run")


def test_a_signal_handler_that_calls_in_the_middle_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    class Told(set[str]):
        def add(self, client: str) -> None:
            if client == "tests.Client":
                signal.raise_signal(signal.SIGUSR1)
            super().add(client)

    told = Told()
    monkeypatch.setattr("agentloom.runtime.passed._told", told)
    # A lock that one thread cannot take twice raises here, and does not hang.
    monkeypatch.setattr("agentloom.runtime.passed._lock", Impatient(passed._lock))
    before = signal.signal(signal.SIGUSR1, lambda *_: asked.append(passes("tests.Handler")))
    try:
        assert passes("tests.Client")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert asked == [True]
    assert told == {"tests.Client", "tests.Handler"}


class Impatient:
    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        assert self.lock.acquire(timeout=5)

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_what_is_left_out_on_purpose_and_host_work_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with left_out():
        assert passes("tests.LeftOut")
    assert run_outside(lambda: passes("tests.Work"))
    assert caplog.text == ""


def test_a_call_in_a_run_does_not_pass(caplog: pytest.LogCaptureFixture) -> None:
    @agent
    def asks() -> bool:
        return passes("tests.Inside")

    assert asks.run(store=MemoryStore()).output is False
    assert caplog.text == ""


def test_real_clients_are_named(tmp_path: Path) -> None:
    code = """
import asyncio, logging, sys, urllib.request
import agentloom, aiohttp, httpx, httpx2, requests
logging.basicConfig(format="%(message)s")

@agentloom.agent
def plain() -> int:
    return 1

async def main(url):
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        await answer.read()
    async with httpx2.AsyncClient() as client:
        await client.get(url)
        await agentloom.record(inside(client, url))

async def inside(client, url):
    await client.get(url)

plain.run()
url = sys.argv[1]
httpx.get(url), httpx.get(url), requests.get(url)
try:
    urllib.request.urlopen(url).read()
except OSError:
    pass
asyncio.run(main(url))
"""
    with FakeProvider() as provider:
        done = subprocess.run(
            [sys.executable, "-c", code, provider.openai_url],
            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = re.findall(r"a call of (\S+) to \S+ belongs to no run", done.stderr)
    assert sorted(told) == [
        "aiohttp.ClientSession", "httpx.Client", "httpx2.AsyncClient", "urllib.request", "urllib3",
    ]  # fmt: skip
    assert done.stderr.count("belongs to no run") == 5


def test_a_client_without_an_adapter_is_named_at_the_end_of_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def cache(port: int) -> int:
        with redis.Redis(host="127.0.0.1", port=port, socket_connect_timeout=5) as client:
            return int(client.incr("n"))

    server = fakeredis.TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with record("cache", store=MemoryStore()) as run:
        assert cache(server.server_address[1]) == 1
    server.shutdown()
    server.server_close()
    thread.join()
    assert any("(redis)" in effect["what"] for effect in run.trace.unrecorded), run.trace.unrecorded
    assert "(redis)" in caplog.text
