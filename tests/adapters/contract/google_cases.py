"""google-genai over its own two clients: httpx2 (sync, and async when asked for) and aiohttp (async)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from google import genai
from google.genai import types

from agentloom.testing import Drops, Fails, Raw, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.common import HTML, SLOW, errors

TEXT = Says("It costs forty dollars.", reasoning="hm", usage=(11, 3, 7, 2))
TOOLS = Says(tools=[Wants("lookup", {"id": 812})])
BUSY = Fails(429, "slow down")
ERROR = Fails(503, "come back")
EMBEDDED = Raw(b'{"embeddings":[{"values":[0.5,1.25]}]}')
COUNTED = Raw(b'{"totalTokens": 5}')


def client(url: str, **options: Any) -> genai.Client:
    return genai.Client(api_key="unused", http_options=types.HttpOptions(base_url=url, **options))


def over_httpx(url: str, **options: Any) -> genai.Client:
    from google.genai import _api_client

    module: Any = _api_client
    library = getattr(module, "httpx2", None) or module.httpx  # older releases know httpx alone
    return client(url, httpx_async_client=library.AsyncClient(), **options)


def whole(url: str) -> Any:
    c = client(url)
    config = types.GenerateContentConfig(temperature=0.5, system_instruction="be brief")
    made = [c.models.generate_content(model="gemini-x", contents="hello", config=config) for _ in range(2)]
    chat = c.chats.create(model="gemini-x")
    said = [chat.send_message("a").text, chat.send_message("b").text]
    counted = c.models.count_tokens(model="gemini-x", contents="hello")
    c.close()
    return [seen(one) for one in made], said, seen(chat.get_history()), seen(counted)


def embedded(url: str) -> Any:
    with client(url) as c:
        return seen(c.models.embed_content(model="embed-x", contents=["a"]))


def stream(url: str) -> Any:
    with client(url) as c:
        return [seen(one) for one in c.models.generate_content_stream(model="g", contents="hello")]


def early(url: str) -> Any:
    with client(url) as c:
        events: Any = c.models.generate_content_stream(model="g", contents="hello")
        found = [seen(next(events)) for _ in range(2)]
        events.close()
        return found


def failing(url: str) -> Any:
    with client(url) as c:
        try:
            return seen(c.models.generate_content(model="g", contents="hello"))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            return seen(error)


def failing_stream(url: str) -> Any:
    found: list[Any] = []
    with client(url) as c:
        try:
            for one in c.models.generate_content_stream(model="g", contents="hello"):
                found.append(seen(one))  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - as above
            found.append(seen(error))
    return found


RETRIES = types.HttpRetryOptions(attempts=3, initial_delay=0.6, max_delay=0.7, jitter=0.1)


def retried(url: str) -> Any:
    with client(url, retry_options=RETRIES) as c:
        return seen(c.models.generate_content(model="g", contents="hello"))


def limited(url: str) -> Any:
    with client(url, timeout=200) as c:
        try:
            c.models.generate_content(model="g", contents="hello")
        except Exception as error:  # noqa: BLE001 - as above
            return seen(error)
    return "no error"


def raw(url: str) -> Any:
    with client(url) as c:
        config = types.GenerateContentConfig(should_return_http_response=True)
        made = c.models.generate_content(model="g", contents="hello", config=config)
        return seen(made)


Make = Callable[..., genai.Client]


def programs(make: Make) -> dict[str, Any]:
    """The async programs over the client that ``make`` makes."""

    async def whole_async(url: str) -> Any:
        c = make(url)
        made = await c.aio.models.generate_content(model="g", contents="hello")
        chat = c.aio.chats.create(model="g")
        said = [(await chat.send_message(word)).text for word in ("a", "b")]
        embedded = await c.aio.models.embed_content(model="embed-x", contents=["a"])
        await c.aio.aclose()
        return seen(made), said, seen(embedded)

    async def stream_async(url: str) -> Any:
        c = make(url)
        events = await c.aio.models.generate_content_stream(model="g", contents="hello")
        found = [seen(one) async for one in events]
        await c.aio.aclose()
        return found

    async def early_async(url: str) -> Any:
        c = make(url)
        events: Any = await c.aio.models.generate_content_stream(model="g", contents="hello")
        found = []
        async for one in events:
            found.append(seen(one))
            if len(found) == 2:
                break
        await events.aclose()
        await c.aio.aclose()
        return found

    async def failing_async(url: str) -> Any:
        found: list[Any] = []
        c = make(url)
        for ask in (c.aio.models.generate_content, c.aio.models.generate_content_stream):
            try:
                made: Any = await ask(model="g", contents="hello")
                if hasattr(made, "__aiter__"):
                    async for one in made:
                        found.append(seen(one))  # noqa: PERF401 - what came before an error counts
                else:
                    found.append(seen(made))
            except Exception as error:  # noqa: BLE001 - as above
                found.append(seen(error))
        await c.aio.aclose()
        return found

    async def retried_async(url: str) -> Any:
        c = make(url, retry_options=RETRIES)
        made = seen(await c.aio.models.generate_content(model="g", contents="hello"))
        await c.aio.aclose()
        return made

    async def cancelled(url: str) -> Any:
        c = make(url)
        found: list[Any] = []
        try:
            await asyncio.wait_for(c.aio.models.generate_content(model="g", contents="hello"), 0.7)
        except TimeoutError:
            found.append("timeout")
        found.append((await c.aio.models.generate_content(model="g", contents="hello")).text)
        await c.aio.aclose()
        return found

    async def raw_async(url: str) -> Any:
        c = make(url)
        config = types.GenerateContentConfig(should_return_http_response=True)
        made = seen(await c.aio.models.generate_content(model="g", contents="hello", config=config))
        await c.aio.aclose()
        return made

    return {name: one for name, one in locals().items() if name != "make"}


def cases(make: Make) -> list[Case]:
    of = programs(make)
    return [
        Case("async", of["whole_async"], [TEXT, TEXT, TOOLS, EMBEDDED], ["model"] * 4),
        Case("stream", of["stream_async"], [TEXT], ["model"]),
        Case("left early", of["early_async"], [TEXT], ["model"]),
        Case("error", of["failing_async"], [BUSY, BUSY], ["model"] * 2, "429"),
        Case("error", of["failing_async"], [HTML, HTML], ["model"] * 2, "not JSON"),
        Case("error", of["failing_async"], [Drops(), Drops()], None, "dropped"),
        Case("error", of["failing_async"], [TEXT, Says("a b c d", break_after=2)], ["model"] * 2, "broken"),
        Case("retry", of["retried_async"], [ERROR, BUSY, TEXT], waits=True),
        Case("cancel", of["cancelled"], [SLOW, TEXT], ["model"] * 2, waits=True),
        Case("raw", of["raw_async"], [TEXT], ["model"]),
    ]


SYNC = [
    Case("sync", whole, [TEXT, TOOLS, TEXT, TEXT, COUNTED], ["model"] * 4 + ["http"]),
    Case("sync", embedded, [EMBEDDED], ["model"], "embedding"),
    Case("stream", stream, [TEXT], ["model"]),
    Case("left early", early, [TEXT], ["model"]),
    *errors((failing, failing_stream), {"429": BUSY, "not JSON": HTML, "dropped": Drops()}),
    Case("error", failing_stream, [Says("a b c d", break_after=2)], ["model"], "broken"),
    Case("retry", retried, [ERROR, BUSY, TEXT], waits=True),
    Case("cancel", limited, [SLOW], ["model"], "by a time limit"),
    Case("raw", raw, [TEXT], ["model"]),
]
SEAMS = [
    Seam("google-genai (httpx2)", [*SYNC, *cases(over_httpx)]),
    Seam("google-genai (aiohttp)", cases(client), lacks={"sync": "sync calls go through httpx2"}),
]
