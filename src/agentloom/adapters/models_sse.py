"""Server-sent events as JSON values, for providers that are read without an SDK; and errors in lines of their own.

Some servers (llama.cpp's for years, and what is built on it) say what went wrong in mid-stream in a field ``error:``,
which the specification of event streams does not have and readers skip. Then the stream only seems cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agentloom.adapters.http_wire import EventReader

__all__ = ["Decoder", "hear_errors", "is_done"]

_FIELD = "error:"
_DONE = "data: [DONE]"


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
    for line in lines:
        if line.startswith(_FIELD):
            yield _error_in(line)
            return
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    text = "\n".join(data or [line for line in lines if not line.startswith(":")])
    if text.strip():
        yield json.loads(text)


def _error_in(line: str) -> dict[str, Any]:
    """What an ``error:`` line says, in the form that errors have in a ``data:`` line."""
    said = line[len(_FIELD) :].strip()
    try:
        value: object = json.loads(said)
    except ValueError:
        value = said
    if isinstance(value, dict) and "error" in value:
        return cast("dict[str, Any]", value)
    return {"error": value if isinstance(value, dict) else {"message": str(value)}}


def hear_errors(client: Any) -> None:
    """Have the client of an SDK raise, as the errors that they are, those that come in an ``error:`` line. Does nothing
    to a client whose streams are decoded in another way."""
    make = getattr(client, "_make_sse_decoder", None)
    if make is None:
        return

    def made() -> Any:
        decoder = make()
        decode = decoder.decode

        def hearing(line: str) -> Any:
            if line == _DONE:
                decoder.agentloom_done = True
            if not line.startswith(_FIELD):
                return decode(line)
            decode("event: error")
            decode(f"data: {json.dumps(_error_in(line))}")
            return decode("")

        decoder.decode = hearing
        return decoder

    client._make_sse_decoder = made


def is_done(events: object) -> bool:
    """Whether the stream of an SDK's client (see ``hear_errors``) ended with ``[DONE]``, as OpenAI's do: then the
    answer is whole, also where a router forgot to say why it ended."""
    return getattr(getattr(events, "_decoder", None), "agentloom_done", False) is True
