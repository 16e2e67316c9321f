"""The server of the fakes: starts and stops again, refuses what its owner does not answer, leaves nothing behind."""

from __future__ import annotations

import threading

import httpx2
import pytest

from agentloom.testing.loopback import Loopback, QuietHandler


class Echo(QuietHandler):
    def answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def test_it_runs_between_start_and_stop_and_again() -> None:
    server = Loopback(Echo, "echo server")
    with pytest.raises(ValueError, match="the echo server does not run"):
        print(server.url)
    before = threading.active_count()
    for _ in range(2):
        with server, httpx2.Client(trust_env=False) as client:
            url = server.url
            assert client.post(url, content=b"abc").content == b"abc"
            assert [client.request(method, url).status_code for method in ("GET", "PUT", "DELETE")] == [
                501
            ] * 3
        with httpx2.Client(trust_env=False) as client, pytest.raises(httpx2.ConnectError):
            client.post(url, content=b"abc")
    server.stop()
    assert threading.active_count() == before


def test_stopping_does_not_wait_for_clients_that_keep_their_connections() -> None:
    with httpx2.Client(trust_env=False) as client, Loopback(Echo, "echo server") as server:
        client.post(server.url, content=b"a")
