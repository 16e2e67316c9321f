"""Server-sent events as JSON values, for providers that are read without an SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.adapters.http_wire import EventReader

__all__ = ["Decoder"]


class Decoder:
    """Takes the bytes of a stream apart into the JSON values of its events. ValueError for data that is no JSON."""

    def __init__(self) -> None:
        self._events = EventReader()

    def feed(self, data: bytes) -> Iterator[object]:
        for event in self._events.feed(data):
            yield from _values(event)

    def finish(self) -> Iterator[object]:
        """The values that the end of the bytes completes. A last event without its empty line counts when it is whole
        (Google's own SDK reads it); one that was cut off says nothing."""
        for event in self._events.finish():
            try:
                yield from list(_values(event))
            except ValueError:
                return


def _values(event: Mapping[str, Any]) -> Iterator[object]:
    if "json" in event:
        yield event["json"]
    elif "bytes" in event:
        raise ValueError("the stream's bytes are no text")
    elif "text" in event:  # lines in no plain form: an error may come as bare JSON in the middle of a stream
        yield from _of_lines(event["text"].removeprefix("\ufeff").splitlines())
    elif event.get("data") not in (None, "", "[DONE]"):
        yield json.loads(event["data"])


def _of_lines(lines: list[str]) -> Iterator[object]:
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    text = "\n".join(data or [line for line in lines if not line.startswith(":")])
    if text.strip():
        yield json.loads(text)
