"""`read_traffic`: a file of recorded HTTP traffic, whatever tool wrote it, as exchanges."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from agentloom.errors import NotSupported, TrafficError
from agentloom.testing import traffic_bare
from agentloom.testing.exchanges import Exchange, Frame, Traffic
from agentloom.testing.traffic_forms import FORMS, container_of
from agentloom.testing.traffic_yaml import load_yaml

__all__ = ["CONTAINERS", "LIMIT", "read_traffic"]

LIMIT = 64 * 1024 * 1024
"""Bytes that a file may have, also when it is decompressed."""

CONTAINERS = (*FORMS, "chunks", "resp_json")
"""The containers that can be named: those of `FORMS`; ``chunks``, a bare stream; ``resp_json``, a bare body."""


def read_traffic(
    path: str | os.PathLike[str], container: str | None = None, *, limit: int = LIMIT
) -> Traffic:
    """Read a file (also gzipped) of recorded traffic.

    ``container``: one of `CONTAINERS`; None finds out from the content, never from the file's name. TrafficError for
    what is no recorded traffic, broken, or larger than ``limit`` bytes; nothing in a file is ever executed.
    """
    where = os.fspath(path)
    name = Path(where).name
    if container is not None and container not in CONTAINERS:
        raise NotSupported(f"no container {container!r} is known", hint=f"one of {', '.join(CONTAINERS)}")
    data = _read(where, name, limit)
    if container in ("chunks", "resp_json"):
        named = traffic_bare.stream_of(data, name) if container == "chunks" else None
        found = named or traffic_bare.bare(data, name) or traffic_bare.body_of(data, name)
        return Traffic(where, container, (found,))
    if container is None and (answer := traffic_bare.bare(data, name)) is not None:
        return Traffic(where, "chunks" if answer.streamed else "resp_json", (answer,))
    whole = _parsed(data, name)
    likely = container_of(whole)
    if likely is None:
        raise _unknown(name)
    form = container or likely
    if FORMS[form] is not FORMS[likely]:
        raise TrafficError(f"{name} is no {container}: by its fields it is {likely}", file=name)
    items = list(FORMS[form](whole, name))
    exchanges = tuple(item for item in items if isinstance(item, Exchange))
    frames = tuple(item for item in items if isinstance(item, Frame))
    return Traffic(where, form, exchanges, frames, tuple(item for item in items if isinstance(item, str)))


def _unknown(name: str) -> TrafficError:
    return TrafficError(
        f"{name}: no recorded HTTP traffic of a form that is known",
        hint=f"known are {', '.join(CONTAINERS)}; any bytes are read as one answer with container='resp_json'",
        file=name,
    )


def _read(where: str, name: str, limit: int) -> bytes:
    try:
        with open(where, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise TrafficError(f"{name} cannot be read: {error.strerror}", file=name) from error
    if len(data) <= limit and data.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(31)
        try:
            data = stream.decompress(data, limit + 1)
        except zlib.error as error:
            raise TrafficError(f"{name}: the gzip file is broken: {error}", file=name) from None
        if len(data) <= limit and not stream.eof:
            raise TrafficError(f"{name}: the gzip file ends in the middle", file=name)
    if len(data) > limit:
        raise TrafficError(
            f"{name} holds more than {limit:,} bytes", hint="read_traffic(path, limit=...)", file=name
        )
    if not data.strip():
        raise TrafficError(f"{name} is empty", file=name)
    return data


def _parsed(data: bytes, name: str) -> Any:
    """JSON where the first character says so and it holds, else YAML (which has JSON in it, nearly)."""
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start in (b"{", b"["):
        try:
            return json.loads(data)
        except RecursionError:
            raise TrafficError(f"{name}: the JSON is nested too deep", file=name) from None
        except ValueError as error:
            raise TrafficError(f"{name}: the JSON does not hold together: {error}", file=name) from None
    if b"\0" in data[:4096] or data.startswith((b"PK", b"<!", b"<?", b"<h")):
        raise _unknown(name)
    return load_yaml(data, name)
