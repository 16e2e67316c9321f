"""One program three times with a real SDK: bare, recorded, and replayed with the server stopped."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import Callable
from typing import Any

import anthropic
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from agentloom import Trace, agent
from agentloom.adapters import sdks
from agentloom.store import MemoryStore
from tests.cases.wire import Sent, Wire, seen

Program = Callable[[str], Any]


def three_times(program: Program, *answers: Sent) -> Trace:
    """Run ``program(base_url)`` bare, recorded and replayed; all three must return the same. The recorded run."""
    sdks.watch()
    with Wire(*answers) as wire:
        bare = asyncio.run(program(wire.url)) if inspect.iscoroutinefunction(program) else program(wire.url)
        asked = list(wire.bodies)
    again: list[Any] = []

    async def awaited(url: str) -> Any:
        again.append(await program(url))
        return again[-1]

    def called(url: str) -> Any:
        again.append(program(url))
        return again[-1]

    made = agent(name="program")(awaited if inspect.iscoroutinefunction(program) else called)
    with Wire(*answers) as wire:
        trace = made.run(wire.url, store=MemoryStore())
        assert wire.bodies == asked
    report = trace.replay(check=False)
    assert report.verdict == "identical", str(report)
    assert len(again) == 2
    for number, got in enumerate(again):
        assert got == bare, f"{('recorded', 'replayed')[number]}: {_first_difference(bare, got)}"
    assert trace.output == bare
    return trace


def _first_difference(bare: Any, now: Any, at: str = "") -> str:
    """Where two outputs part, for the message of a failed test."""
    if type(bare) is type(now) and isinstance(bare, dict) and list(bare) == list(now):
        pairs = [(f"{at}.{name}", bare[name], now[name]) for name in bare]
    elif isinstance(bare, list) and isinstance(now, list) and len(bare) == len(now):
        pairs = [(f"{at}[{number}]", bare[number], now[number]) for number in range(len(bare))]
    else:
        return f"{at}: {str(bare)[:300]} now {str(now)[:300]}"
    return next(_first_difference(old, new, where) for where, old, new in pairs if old != new)


# Making one takes ten times as long as a request.
_CONTEXT = ssl.create_default_context()


def client(url: str) -> openai.OpenAI:
    """A client that makes one attempt."""
    http = openai.DefaultHttpxClient(verify=_CONTEXT)
    return openai.OpenAI(base_url=url, api_key="unused", max_retries=0, http_client=http)


def aclient(url: str) -> openai.AsyncOpenAI:
    """The same, async."""
    http = openai.DefaultAsyncHttpxClient(verify=_CONTEXT)
    return openai.AsyncOpenAI(base_url=url, api_key="unused", max_retries=0, http_client=http)


def claude(url: str) -> anthropic.Anthropic:
    """The same for Anthropic's SDK, which adds the version to the address itself."""
    return anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="unused", max_retries=0)


def aclaude(url: str) -> anthropic.AsyncAnthropic:
    """The same, async."""
    return anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="unused", max_retries=0)


def assembled(chunks: list[Any]) -> Any:
    """What the SDK's own assembly makes of the chunks, or the error that it raises."""
    state = ChatCompletionStreamState()
    try:
        for chunk in chunks:
            state.handle_chunk(chunk.model_copy(deep=True))
        return [seen(state.current_completion_snapshot), seen(state.get_final_completion())]
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises, it must raise it three times
        return seen(error)


def whole(url: str, request: dict[str, Any]) -> Any:
    """A whole answer."""
    with client(url) as made:
        try:
            return seen(made.chat.completions.create(**request))
        except openai.OpenAIError as error:
            return seen(error)


async def whole_async(url: str, request: dict[str, Any]) -> Any:
    """The same, async."""
    async with aclient(url) as made:
        try:
            return seen(await made.chat.completions.create(**request))
        except openai.OpenAIError as error:
            return seen(error)


def streamed(url: str, request: dict[str, Any]) -> Any:
    """Every event of a stream, how it ended, and the message assembled from them."""
    chunks: list[Any] = []
    raised: BaseException | None = None
    with client(url) as made:
        try:
            for chunk in made.chat.completions.create(**request, stream=True):
                chunks.append(chunk)  # noqa: PERF402 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - an SDK raises more than its own errors on a broken stream
            raised = error
    return [seen(chunks), seen(raised), assembled(chunks)]


async def streamed_async(url: str, request: dict[str, Any]) -> Any:
    """The same, async."""
    chunks: list[Any] = []
    raised: BaseException | None = None
    async with aclient(url) as made:
        try:
            async for chunk in await made.chat.completions.create(**request, stream=True):
                chunks.append(chunk)  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - as above
            raised = error
    return [seen(chunks), seen(raised), assembled(chunks)]
