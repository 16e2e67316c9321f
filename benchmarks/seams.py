"""What a call costs through each seam: processor time recording and replaying, against the same calls bare.

``python -m benchmarks.seams [NAME ...] [--calls N] [--rounds N]``; exit code 1 when a ratio is over its bound, 1.5
recording or 1.2 replaying (docs/sdks/index.md). The server is a process of its own, so its time is not counted.
The three take turns in each round, and a ratio is that of the least times: what else runs only adds to a time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

RECORDING, REPLAYING = 1.5, 1.2
MESSAGES: list[Any] = [
    {"role": "system", "content": "You help with orders. " * 20},
    {"role": "user", "content": "What does order 812 cost, and when does it arrive?"},
]
Program = Callable[[str, int], Any]


def openai_sync(url: str, calls: int) -> Any:
    import openai

    with openai.OpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            c.chat.completions.create(model="m", messages=MESSAGES)


async def openai_async(url: str, calls: int) -> Any:
    import openai

    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            await c.chat.completions.create(model="m", messages=MESSAGES)


def openai_stream(url: str, calls: int) -> Any:
    import openai

    with openai.OpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            for _ in c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                pass


def anthropic_sync(url: str, calls: int) -> Any:
    import anthropic

    with anthropic.Anthropic(base_url=url, api_key="unused") as c:
        for _ in range(calls):
            c.messages.create(model="m", max_tokens=9, messages=MESSAGES[1:])


async def anthropic_async(url: str, calls: int) -> Any:
    import anthropic

    async with anthropic.AsyncAnthropic(base_url=url, api_key="unused") as c:
        for _ in range(calls):
            await c.messages.create(model="m", max_tokens=9, messages=MESSAGES[1:])


def _google(url: str) -> Any:
    from google import genai
    from google.genai import types

    return genai.Client(api_key="unused", http_options=types.HttpOptions(base_url=url))


def google_sync(url: str, calls: int) -> Any:
    with _google(url) as c:
        for _ in range(calls):
            c.models.generate_content(model="g", contents="hello")


async def google_async(url: str, calls: int) -> Any:
    c = _google(url)
    for _ in range(calls):
        await c.aio.models.generate_content(model="g", contents="hello")
    await c.aio.aclose()


def litellm_sync(url: str, calls: int) -> Any:
    import litellm

    for _ in range(calls):
        litellm.completion(model="openai/m", messages=MESSAGES, api_base=url + "/v1", api_key="unused")


def httpx2_sync(url: str, calls: int) -> Any:
    import httpx2

    with httpx2.Client() as c:
        for _ in range(calls):
            c.post(url + "/x", json={"q": MESSAGES}).json()


def requests_sync(url: str, calls: int) -> Any:
    import requests

    with requests.Session() as c:
        for _ in range(calls):
            c.post(url + "/x", json={"q": MESSAGES}, timeout=9).json()


async def aiohttp_async(url: str, calls: int) -> Any:
    import aiohttp

    async with aiohttp.ClientSession() as c:
        for _ in range(calls):
            async with c.post(url + "/x", json={"q": MESSAGES}) as answer:
                await answer.json()


SEAMS: dict[str, Program] = {
    name: one
    for name, one in list(globals().items())
    if name.endswith(("_sync", "_async", "_stream")) and inspect.isfunction(one)
}


@contextlib.contextmanager
def server() -> Iterator[str]:
    """A scripted server in a process of its own; its address."""
    made = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.seams", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert made.stdout is not None
    assert made.stdin is not None
    try:
        yield made.stdout.readline().strip()
    finally:
        made.stdin.close()
        made.wait()
        made.stdout.close()


def serve() -> None:
    """Answer until standard input ends."""
    from agentloom.testing import FakeProvider, Says

    with FakeProvider(lambda _: Says("It costs forty dollars and arrives on Monday."), others=True) as fake:
        print(fake.url, flush=True)
        sys.stdin.read()


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def measure(program: Program, url: str, calls: int, rounds: int) -> tuple[float, float, float]:
    """Microseconds of a bare call, and the ratios of recording and replaying to it."""
    from agentloom import agent
    from agentloom.store import MemoryStore

    if inspect.iscoroutinefunction(program):

        async def awaited(address: str) -> Any:
            await program(address, calls)

        run: Any = awaited
    else:

        def called(address: str) -> Any:
            program(address, calls)

        run = called
    found: dict[str, list[float]] = {"bare": [], "recording": [], "replaying": []}
    is_async = inspect.iscoroutinefunction(program)
    bare: Callable[[], Any] = (lambda: asyncio.run(run(url))) if is_async else functools.partial(run, url)
    bare()  # imports, caches of the SDK
    for _ in range(rounds):
        found["bare"].append(_timed(bare)[0])
        seconds, trace = _timed(lambda: agent(run).run(url, store=MemoryStore()))
        found["recording"].append(seconds)
        seconds, report = _timed(functools.partial(trace.replay, check=False))
        if report.verdict != "identical":
            raise SystemExit(f"the replay is not identical: {report}")
        found["replaying"].append(seconds)
    least = {name: min(times) for name, times in found.items()}
    return least["bare"] / calls * 1e6, least["recording"] / least["bare"], least["replaying"] / least["bare"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seams")
    parser.add_argument("names", nargs="*", help="seams (part of a name); all without any")
    parser.add_argument("--calls", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve()
        return 0
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from agentloom.adapters import sdks

    sdks.watch()
    over = 0
    print("| seam | bare, us a call | recording | replaying |")
    print("| --- | --- | --- | --- |")
    with server() as url:
        for name, program in SEAMS.items():
            if options.names and not any(part in name for part in options.names):
                continue
            bare, recording, replaying = measure(program, url, options.calls, options.rounds)
            over += recording > RECORDING or replaying > REPLAYING
            print(
                f"| {name.replace('_', ' ')} | {bare:.0f} | {recording:.2f} | {replaying:.2f} |", flush=True
            )
    print(f"\nover the bound: {over}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
