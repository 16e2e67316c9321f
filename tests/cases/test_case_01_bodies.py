"""Neighbours of case 1: compressed bodies, multipart bodies with JSON in them, and multipart of another kind."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import zlib
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from agentloom import agent, profile
from agentloom.adapters import sdks
from agentloom.store import MemoryStore
from tests.cases.test_case_01_uploads import paths
from tests.cases.wire import Sent, Wire

ANSWER = Sent(b'{"ok": true}', headers={"content-type": "application/json"})
_times = itertools.count(1_000_000)


def _gzipped(data: bytes) -> bytes:
    """As ``gzip`` makes it: with the time in its header, so never the same bytes twice."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=next(_times)) as file:
        file.write(data)
    return out.getvalue()


def _raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", _gzipped), ("X-GZIP", _gzipped), ("deflate", zlib.compress), ("deflate", _raw_deflate)],
    ids=["gzip", "x-gzip", "deflate", "raw deflate"],
)
def test_a_compressed_body_is_what_it_unfolds_to(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    sdks.watch()
    given = {"q": "order 812"}

    @agent
    def program(url: str) -> Any:
        headers = {"content-type": "application/json", "content-encoding": encoding}
        return httpx2.post(url + "/things", content=pack(json.dumps(given).encode()), headers=headers).json()

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
        assert b"order" not in wire.bodies[0], "it is sent as the program made it"
    assert trace.calls[0].request["json"] == {"q": "order 812"}
    assert trace.replay(check=False).verdict == "identical"
    given["q"] = "order 813"
    assert paths(trace.replay(check=False)) == ["json.q"]


def test_what_only_says_that_it_is_compressed_is_kept_as_it_is() -> None:
    sdks.watch()

    @agent
    def program(url: str) -> Any:
        return httpx2.post(url + "/x", content=b"plain \xff", headers={"content-encoding": "gzip"}).json()

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
    assert trace.calls[0].request["bytes"] == b"plain \xff"
    assert trace.replay(check=False).verdict == "identical"


META = {"title": "t", "tags": [{"name": "a"}, {"name": "b"}]}


def test_json_inside_of_a_multipart_body_is_looked_into() -> None:
    sdks.watch()
    given: dict[str, Any] = {"meta": META, "id": "1"}
    rule = profile("http/1", noted=["form.meta.json.request_id"])

    @agent(profiles=[rule])
    def program(url: str) -> Any:
        meta = json.dumps(given["meta"] | {"request_id": given["id"]})
        files = {
            "meta": (None, meta.encode(), "application/json"),
            "file": ("a.bin", b"\x00\xff", "application/x"),
        }
        return httpx2.post(url + "/things", files=files).json()

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
    assert trace.calls[0].request["form"]["meta"]["json"] == META | {"request_id": "1"}
    assert trace.replay().verdict == "identical"
    given["id"] = "2"
    report = trace.replay()
    assert report.verdict == "identical except noted"
    assert [item.path for item in report.noted[0].comparison.items] == ["form.meta.json.request_id"]
    given["meta"] = json.loads(json.dumps(META).replace('"b"', '"c"'))
    assert paths(trace.replay(check=False)) == ["form.meta.json.tags[1].name"]


def test_multipart_of_another_kind_does_not_count_its_boundary() -> None:
    """As uploads with metadata go (multipart/related): parts without names."""
    sdks.watch()
    given = {"data": b"\x89PNG\xff" * 50}

    @agent
    def program(url: str) -> Any:
        line = f"b{next(_times)}".encode()
        head = b"--" + line + b"\r\ncontent-type: application/json\r\n\r\n" + json.dumps(META).encode()
        body = (
            head
            + b"\r\n--"
            + line
            + b"\r\ncontent-type: image/png\r\n\r\n"
            + given["data"]
            + b"\r\n--"
            + line
            + b"--"
        )
        kind = f"multipart/related; boundary={line.decode()}"
        return httpx2.post(url + "/upload", content=body, headers={"content-type": kind}).json()

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
    assert trace.replay(check=False).verdict == "identical"
    given["data"] = given["data"][:99] + b"\x00" + given["data"][100:]
    assert trace.replay(check=False).verdict == "diverged"


def test_a_page_token_counts_and_a_key_is_not_written() -> None:
    sdks.watch()
    given = {"page": "p1", "key": "k" * 3 + "1"}

    @agent
    def program(url: str) -> Any:
        return httpx2.post(f"{url}/list?page_token={given['page']}&sort_key=name&key={given['key']}").json()

    with Wire(ANSWER) as wire:
        trace = program.run(wire.url, store=MemoryStore())
    url = trace.calls[0].request["url"]
    assert "page_token=p1&sort_key=name" in url
    assert given["key"] not in url
    given["key"] = "another"
    assert trace.replay(check=False).verdict == "identical"
    given["page"] = "p2"
    assert paths(trace.replay(check=False)) == ["url"]
