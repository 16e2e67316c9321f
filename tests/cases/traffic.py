"""Recorded chat completions of real providers: every exchange of them that the manifest names, as bytes to serve.

Nothing is chosen by hand: a file counts when the manifest says that it holds chat completions, or a bare stream or
body of them; an exchange counts when its request went to ``/chat/completions`` and its answer has a body.
"""

from __future__ import annotations

import base64
import csv
import importlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentloom.testing import Raw

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
WHY = "no folder of recorded traffic (shared/corpus) beside the repository"
_EVENTS = "text/event-stream; charset=utf-8"


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


def rows() -> list[dict[str, str]]:
    """The manifest's rows of files that hold chat completions."""
    with (CORPUS / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        every = list(csv.DictReader(file, delimiter="\t"))
    return [row for row in every if "chat.completions" in row["api"].split(",") or row["api"] == "chunks"]


def exchanges() -> list[Exchange]:
    """Every exchange of the manifest's files; an empty list without the corpus."""
    if not CORPUS.is_dir():
        return []
    return [found for row in rows() for found in _of_file(row)]


def _of_file(row: Mapping[str, str]) -> Iterator[Exchange]:
    path, kinds = CORPUS / row["file"], frozenset(row["kind_tags"].split(";"))
    name = path.name[:70]
    if row["api"] == "chunks":
        found = _bare(path)
        if found is not None:
            yield Exchange(name, kinds, True, 200, _EVENTS, found)
        return
    for number, item in enumerate(_items(path)):
        made = _exchange(f"{name}#{number}", kinds, item)
        if made is not None:
            yield made


def _bare(path: Path) -> bytes | None:
    """A stream without its request: server-sent events, or one JSON value a line. None: another API's events."""
    data = path.read_bytes()
    if b'"chat.completion.chunk"' not in data:
        return None
    if path.suffix == ".sse":
        return data
    return b"".join(b"data: " + line + b"\n\n" for line in data.splitlines()) + b"data: [DONE]\n\n"


def _items(path: Path) -> list[Any]:
    if path.suffix in (".yaml", ".yml"):
        whole = _yaml(path)
        return list(whole.get("interactions") or whole.get("http_interactions") or [])
    whole = json.loads(path.read_bytes())
    return list(whole["log"]["entries"]) if path.suffix == ".har" else [whole]


def _yaml(path: Path) -> Any:
    yaml: Any = importlib.import_module("yaml")
    loader: Any = type("Loader", (yaml.CSafeLoader,), {})
    # Tags of Python's own loader stand on header names; as plain values they are as good.
    loader.add_multi_constructor("tag:yaml.org,2002:python/", _plain)
    loader.add_constructor("!binary", lambda _, node: base64.b64decode(node.value))  # as Ruby writes it
    with path.open("rb") as file:
        return yaml.load(file, Loader=loader)


def _plain(loader: Any, _: str, node: Any) -> Any:
    kind = type(node).__name__
    if kind == "SequenceNode":
        return tuple(loader.construct_sequence(node, deep=True))
    return loader.construct_mapping(node) if kind == "MappingNode" else loader.construct_scalar(node)


def _exchange(name: str, kinds: frozenset[str], item: Mapping[str, Any]) -> Exchange | None:
    request, response = item["request"], item.get("response") or {}
    url = str(request.get("uri") or request.get("url") or "")
    if not re.search(r"/chat/completions(?![/\w])", url):
        return None
    body, data = _sent(request), _received(response)
    if data is None or not isinstance(body, dict):
        return None
    code = response.get("status", 200)
    status = int(code["code"] if isinstance(code, dict) else code)
    streamed = bool(body.get("stream"))
    kind = _content_type(response) or (
        _EVENTS if data.lstrip().startswith((b"data:", b":")) else "application/json"
    )
    return Exchange(name, kinds, streamed, status, kind, data, body)


def _sent(request: Mapping[str, Any]) -> Any:
    if "parsed_body" in request:
        return request["parsed_body"]
    body = request.get("body", (request.get("postData") or {}).get("text"))
    if isinstance(body, dict) and set(body) <= {"string", "encoding", "base64_string"}:
        body = body.get("string")
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    return json.loads(body) if isinstance(body, str) and body.lstrip().startswith("{") else body


def _received(response: Mapping[str, Any]) -> bytes | None:
    if "parsed_body" in response:
        return json.dumps(response["parsed_body"], ensure_ascii=False).encode()
    body = response.get("body", (response.get("content") or {}).get("text"))
    if isinstance(body, list):  # SDK objects, one an event: back to events
        events = [json.dumps(chunk["__data__"], ensure_ascii=False) for chunk in body]
        return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()
    if isinstance(body, dict) and "__data__" in body:
        return json.dumps(body["__data__"], ensure_ascii=False).encode()
    if isinstance(body, dict):
        body = body.get("string")
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if not isinstance(data, bytes) or not data:
        return None
    if data.startswith(b"\x1f\x8b"):
        gzip: Any = importlib.import_module("gzip")
        data = gzip.decompress(data)
    return data


def _content_type(response: Mapping[str, Any]) -> str | None:
    headers = response.get("headers") or {}
    pairs = (
        headers.items()
        if isinstance(headers, dict)
        else [(entry["name"], entry["value"]) for entry in headers]
    )
    for name, value in pairs:
        text = name[0] if isinstance(name, tuple) else name
        if str(text).lower() == "content-type":
            return str(value[0] if isinstance(value, list) else value)
    return None
