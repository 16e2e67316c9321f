"""Recorded chat completions of real providers: every exchange of them in the corpus, as bytes to serve.

An exchange counts when it speaks the API (``tests.corpus.files.api_of``) and its answer has a body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentloom.testing import Raw
from tests.corpus.files import api_of
from tests.corpus.files import exchanges as recorded


@dataclass(frozen=True)
class Exchange:
    """One request that somebody sent, and the answer's bytes. ``body`` is {} where only the answer is known."""

    name: str
    kinds: frozenset[str]
    streamed: bool
    status: int
    content_type: str
    data: bytes = field(repr=False)
    body: Mapping[str, Any] = field(repr=False, default_factory=dict[str, Any])

    def raw(self) -> Raw:
        """The answer as a scripted reply."""
        return Raw(self.data, self.status, {"content-type": self.content_type})

    def request(self) -> dict[str, Any]:
        """Arguments of ``chat.completions.create``: the recorded request, most of it as extra fields."""
        body = dict(self.body)
        known: dict[str, Any] = {
            name: body.pop(name) for name in ("model", "messages", "tools", "temperature") if name in body
        }
        known.setdefault("model", "m")
        known.setdefault("messages", [{"role": "user", "content": "hello"}])
        body.pop("stream", None)
        return {**known, "extra_body": body or None}


def exchanges() -> list[Exchange]:
    """Every chat completion of the corpus; an empty list without it."""
    found: list[Exchange] = []
    for row, one in recorded():
        if api_of(one) != "chat" or not one.body:
            continue
        body = one.request() or {}
        streamed = bool(body.get("stream")) if body else one.streamed
        kind = one.header("content-type") or one.content_type
        found.append(Exchange(one.name[-90:], row.kinds, streamed, one.status, kind, one.content, body))
    return found
