"""A player of made answers for providers without an SDK between, and the four ways to ask for one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentloom.adapters.models import backend
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange, Player
from agentloom.testing.traffic_bare import event_message

MESSAGES = [{"role": "user", "content": "What does 812 cost?"}]
EVENT_STREAM = "application/vnd.amazon.eventstream"


def exchange(
    path: str,
    body: bytes,
    *,
    status: int = 200,
    kind: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """An answer at a path, sent in one piece of which nothing is known to the client before it came."""
    said = (("content-type", kind), *((headers or {}).items()))
    return Exchange(
        "made", "POST", f"http://host{path}", (), None, status, said, body, kind != "application/json"
    )


def failing(path: str, status: int, body: object, headers: Mapping[str, str] | None = None) -> Exchange:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return exchange(path, data, status=status, headers=headers)


def sse(events: Sequence[object], end: str = "\r\n\r\n") -> bytes:
    """Events as Google writes them."""
    return "".join(f"data: {json.dumps(event, ensure_ascii=False)}{end}" for event in events).encode()


def aws(events: Sequence[tuple[str, object]]) -> bytes:
    """Events as AWS writes them."""
    return b"".join(event_message(kind, payload) for kind, payload in events)


def server(*answers: Exchange) -> Player:
    return Player(*answers, compare="path", repeat=True)


def ask(player: Player, name: str, **params: Any) -> dict[str, Any]:
    return {"model": name, "messages": MESSAGES, "base_url": player.url, "api_key": "key-of-nobody", **params}


def four_ways(player: Player, name: str, **params: Any) -> list[dict[str, Any]]:
    """The same answer asked for whole and streamed, blocking and awaited."""
    request = ask(player, name, **params)

    async def awaited() -> list[dict[str, Any]]:
        whole = await backend.complete(request)
        return [whole, assemble([delta async for delta in backend.stream(request)])]

    return [backend.complete_sync(request), assemble(backend.stream_sync(request)), *asyncio.run(awaited())]
