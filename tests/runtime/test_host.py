"""Host calls as data: what each asks for, and that it is performed with fresh copies of what was written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentloom import agent, http, retrieve, sleep, step, sync
from agentloom.runtime.host import is_async, sleep_spec, step_spec
from agentloom.store import MemoryStore


class _Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked, and with bytes that are no text under ``/bytes``."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        answer = b"\xff\xfe" if self.path.startswith("/bytes") else json.dumps([self.path, body]).encode()
        self.send_response(201)
        self.send_header("X-Seen", "1")
        self.send_header("Set-Cookie", "session=secret")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of the base class
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    thread.join()
    served.server_close()


@agent
async def posting(url: str) -> dict[str, Any]:
    return await http("POST", f"{url}/orders", params={"n": "1"}, json={"order": 812}, headers={"X-A": "b"})


@agent
def posting_bytes(url: str) -> dict[str, Any]:
    return sync.http("post", f"{url}/bytes", content="x")


def test_http_gives_status_headers_and_text(server: str) -> None:
    trace = posting.run(server, store=MemoryStore())
    answer = trace.output
    assert answer["status"] == 201
    assert json.loads(answer["body"]) == ["/orders?n=1", '{"order":812}']
    assert answer["headers"]["x-seen"] == "1"
    assert "set-cookie" not in answer["headers"]
    assert trace.calls[0].kind == "http"


def test_http_gives_bytes_where_the_body_is_no_text_and_replays_without_the_server(server: str) -> None:
    trace = posting_bytes.run(server, store=MemoryStore())
    assert trace.output["body"] == b"\xff\xfe"
    assert trace.replay().verdict == "identical"


RAN: list[object] = []


def expensive(items: list[int]) -> int:
    items.append(99)  # its own copy: what was recorded stays
    RAN.append(items)
    return sum(items)


async def search(query: str) -> list[dict[str, Any]]:
    RAN.append(query)
    return [{"id": "doc", "score": 0.5, "text": query}]


@agent
async def working() -> tuple[int, list[int], list[dict[str, Any]]]:
    mine = [1, 2]
    total = await step(expensive, mine)
    await sleep(0)
    return total, mine, await retrieve(search, "tides")


def test_steps_and_retrievers_get_copies_and_do_not_run_again() -> None:
    RAN.clear()
    trace = working.run(store=MemoryStore())
    assert trace.output == (102, [1, 2], [{"id": "doc", "score": 0.5, "text": "tides"}])
    assert trace.calls[0].request == {"args": [[1, 2]], "kwargs": {}}
    assert trace.calls[2].effect == "read"
    RAN.clear()
    assert trace.replay().verdict == "identical"
    assert RAN == []


def test_names_and_requests() -> None:
    assert sleep_spec(1.5).request == {"seconds": 1.5}
    assert step_spec(expensive, ([1],), {}).name == "expensive"


def test_what_counts_as_async() -> None:
    class Callable:
        async def __call__(self) -> None: ...

    assert is_async(search)
    assert is_async(Callable())
    assert not is_async(expensive)
