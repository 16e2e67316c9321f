"""Case 7 through the SDKs: time runs out in the second of three requests; the next turn is valid, and a replay ends at
the same place without waiting. A client's own timeout, and cancelling twice, are its neighbours."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import anthropic
import openai
import pytest

from agentloom import agent
from agentloom.adapters import sdks
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says, Seen

SLOW_S = 3.0
USER: Any = [{"role": "user", "content": "{}"}]


def _openai(url: str, timeout: float | None = None) -> Any:
    made = openai.AsyncOpenAI(base_url=url + "/v1", api_key="unused", max_retries=0, timeout=timeout)

    async def ask(text: str) -> str:
        answer = await made.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
        return str(answer.choices[0].message.content)

    return made, ask


def _anthropic(url: str, timeout: float | None = None) -> Any:
    made = anthropic.AsyncAnthropic(base_url=url, api_key="unused", max_retries=0, timeout=timeout)

    async def ask(text: str) -> str:
        answer = await made.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": text}]
        )
        return "".join(part.text for part in answer.content if part.type == "text")

    return made, ask


SDKS = pytest.mark.parametrize("sdk", [_openai, _anthropic], ids=["openai", "anthropic"])


def _script(seen: Seen) -> Says:
    text = str(seen.body["messages"][-1]["content"])
    return Says(f"re {text}", latency=SLOW_S if text == "slow" else 0.0)


@SDKS
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_the_second_of_three_requests_is_cancelled(sdk: Any, twice: bool) -> None:
    sdks.watch()

    @agent
    async def program(url: str) -> list[str]:
        made, ask = sdk(url)
        out: list[str] = []
        async with made:
            for text in ("one", "slow", "three"):
                task = asyncio.ensure_future(ask(text))
                try:
                    out.append(await asyncio.wait_for(task, 0.3))
                except TimeoutError:
                    out.append("timed out")
                    for _ in range(2 if twice else 0):
                        task.cancel()
            out.append(await ask(" / ".join(out)))
        return out

    with FakeProvider(_script) as provider:
        trace = program.run(provider.url, store=MemoryStore())
    assert trace.output == ["re one", "timed out", "re three", "re re one / timed out / re three"]
    assert [call.status for call in trace.calls if call.kind == "model"] == ["ok", "cancelled", "ok", "ok"]
    began = time.perf_counter()
    report = trace.replay(check=False)
    assert report.verdict == "identical", str(report)
    assert time.perf_counter() - began < 20


@SDKS
def test_three_at_once_of_which_one_is_too_slow(sdk: Any) -> None:
    sdks.watch()

    @agent
    async def program(url: str) -> list[Any]:
        made, ask = sdk(url)
        async with made:
            tasks = [asyncio.ensure_future(ask(text)) for text in ("one", "slow", "three")]
            done, late = await asyncio.wait(tasks, timeout=0.7)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return [len(done), len(late), [task.cancelled() for task in tasks], await ask("and now")]

    with FakeProvider(_script) as provider:
        trace = program.run(provider.url, store=MemoryStore())
    assert trace.output == [2, 1, [False, True, False], "re and now"]
    report = trace.replay(check=False)
    assert report.verdict == "identical", str(report)


@SDKS
def test_the_timeout_of_the_client_itself(sdk: Any) -> None:
    """An error of the SDK's own, with the same type, text and cause on replay, which does not wait for it."""
    sdks.watch()
    told: list[Any] = []

    @agent
    async def program(url: str) -> str:
        made, ask = sdk(url, timeout=0.3)
        async with made:
            try:
                await ask("slow")
            except (openai.APITimeoutError, anthropic.APITimeoutError) as error:
                told.append([type(error), str(error), type(error.__cause__), str(error.__cause__)])
            return await ask("and now")  # type: ignore[no-any-return]

    with FakeProvider(_script) as provider:
        trace = program.run(provider.url, store=MemoryStore())
    assert trace.output == "re and now"
    report = trace.replay(check=False)
    assert report.verdict == "identical", str(report)
    assert len(told) == 2
    assert told[0] == told[1]
    assert [call.status for call in trace.calls if call.kind == "model"] == ["error", "ok"]
