"""A small SDK of an API that no adapter of the package knows: what docs/sdks/adding.md builds an adapter for."""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2

__all__ = ["AsyncTiny", "Said", "Tiny", "TinyError"]


class TinyError(Exception):
    """An answer that is none. ``code`` is the status of HTTP."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclass
class Said:
    """An answer. ``raw`` is the response that it came in."""

    text: str
    tokens: int
    raw: httpx2.Response


def _body(question: str, *, stream: bool) -> dict[str, Any]:
    return {"model": "tiny-1", "question": question, "stream": stream, "trace": "t-1"}


def _said(response: httpx2.Response) -> Said:
    if response.status_code != 200:
        raise TinyError(response.status_code, response.text)
    held = response.json()
    return Said(held["text"], held["tokens"], response)


class Tiny:
    """The sync client. Tries again twice, after a wait that it draws."""

    def __init__(self, url: str, limit: float = 5) -> None:
        self._http = httpx2.Client(base_url=url, timeout=limit)

    def ask(self, question: str) -> Said:
        for _ in range(2):
            response = self._http.post("/v2/answer", json=_body(question, stream=False))
            if response.status_code != 503:
                return _said(response)
            time.sleep(0.5 + random.random() / 10)
        return _said(self._http.post("/v2/answer", json=_body(question, stream=False)))

    def stream(self, question: str) -> Iterator[str]:
        with self._http.stream("POST", "/v2/answer", json=_body(question, stream=True)) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))["text"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._http.close()


class AsyncTiny:
    """The async client."""

    def __init__(self, url: str) -> None:
        self._http = httpx2.AsyncClient(base_url=url)

    async def ask(self, question: str) -> Said:
        return _said(await self._http.post("/v2/answer", json=_body(question, stream=False)))

    async def stream(self, question: str) -> AsyncGenerator[str]:
        async with self._http.stream("POST", "/v2/answer", json=_body(question, stream=True)) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))["text"]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._http.aclose()
