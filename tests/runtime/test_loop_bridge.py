"""Clients without an adapter in a run that refuses nothing: they work, are named, and a replay stops there."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import fakeredis
import pytest
import redis.asyncio as redis
import websockets

from agentloom import Trace, agent, record, replaying
from agentloom.errors import DivergenceError, NotSupported
from agentloom.store import MemoryStore
from tests.api.recorded_programs import in_loop, look


@asynccontextmanager
async def echo(tls: ssl.SSLContext | None = None, *, later: bool = False) -> AsyncIterator[int]:
    """A server that sends back each line; its port. ``later``: TLS begins after the line ``STARTTLS``."""

    handlers: list[asyncio.Task[Any] | None] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.current_task())
        while line := await reader.readline():
            if later and line == b"STARTTLS\n":
                writer.write(b"go\n")
                await writer.drain()
                if tls is not None:
                    await writer.start_tls(tls)
                continue
            writer.write(b"echo " + line)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=None if later else tls)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*(task for task in handlers if task is not None))


@contextmanager
def redis_server() -> Iterator[int]:
    server = fakeredis.TcpFakeServer(("127.0.0.1", 0), server_type="redis")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def says(port: int, *lines: str, tls: ssl.SSLContext | None = None) -> list[str]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls, server_hostname="local" if tls else None
    )
    said: list[str] = []
    for line in lines:
        writer.write(f"{line}\n".encode())
        await writer.drain()
        said.append((await reader.readline()).decode().strip())
    writer.close()
    await writer.wait_closed()
    return said


def unrecorded(trace: Trace) -> list[str]:
    return [effect["what"] for effect in trace.unrecorded]


@in_loop
async def test_a_connection_works_and_is_marked() -> None:
    store = MemoryStore()
    async with echo() as port:
        run = record(says(port, "a", "b"), store=store)
        assert await run == ["echo a", "echo b"]
        assert unrecorded(run.trace) == [f"connects to 127.0.0.1:{port}"]
        assert not run.trace.verify().complete
        report = run.trace.replay(check=False)
        assert report.verdict == "diverged"
        assert report.finding is not None
        assert (report.finding.cls, report.finding.reason) == ("extra", "effect")
        with replaying(run.trace), pytest.raises(DivergenceError, match=f"connects to 127.0.0.1:{port}"):
            await record(says(port, "a", "b"))


@in_loop
async def test_many_connections_beside_recorded_calls() -> None:
    async def main(port: int) -> list[Any]:
        return await asyncio.gather(*(says(port, str(n), "x" * 50_000) for n in range(5)), look(2), look(3))

    async with echo() as port:
        run = record(main(port), store=MemoryStore())
        found = await run
    assert [said[0] for said in found[:5]] == [f"echo {n}" for n in range(5)]
    assert all(len(said[1]) == 50_005 for said in found[:5])
    assert found[5:] == [4, 6]
    assert len(run.trace.calls) == 2


@in_loop
async def test_redis_is_named() -> None:
    async def cache(port: int) -> list[Any]:
        async with redis.Redis(host="127.0.0.1", port=port) as client:
            await client.set("a", "1")
            return list(await asyncio.gather(client.get("a"), client.incr("n"), client.get("none")))

    with redis_server() as port:
        run = record(cache(port), store=MemoryStore())
        assert await run == [b"1", 1, None]
    assert unrecorded(run.trace)[0] == f"connects to 127.0.0.1:{port} (redis)"


@in_loop
async def test_websockets_are_named() -> None:
    async def answer(connection: Any) -> None:
        async for message in connection:
            await connection.send(message.upper())

    async def chat(port: int) -> list[Any]:
        async with websockets.connect(f"ws://127.0.0.1:{port}") as connection:
            await connection.send("one")
            await connection.send("two")
            return [await connection.recv(), await connection.recv()]

    async with websockets.serve(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        run = record(chat(port), store=MemoryStore())
        assert await run == ["ONE", "TWO"]
    assert unrecorded(run.trace) == [f"connects to 127.0.0.1:{port} (websockets)"]


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's, of a certificate made for the test."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=local -keyout {key} -out {certificate}"
    subprocess.run(
        ["openssl", *words.split(), "-addext", "subjectAltName=DNS:local"], check=True, capture_output=True
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))


@in_loop
async def test_tls_from_the_start_and_later(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server, client = contexts
    async with echo(server) as port:
        assert await record(says(port, "a", tls=client), store=MemoryStore()) == ["echo a"]

    async def upgraded(port: int) -> list[bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"STARTTLS\n")
        first = await reader.readline()
        await writer.start_tls(client, server_hostname="local")
        writer.write(b"b\n")
        await writer.drain()
        said = [first, await reader.readline()]
        writer.close()
        await writer.wait_closed()
        return said

    async with echo(server, later=True) as port:
        assert await record(upgraded(port), store=MemoryStore()) == [b"go\n", b"echo b\n"]


@in_loop
async def test_errors_ends_and_cancellation_come_in() -> None:
    async def refused() -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    with pytest.raises(ConnectionRefusedError):
        await record(refused(), store=MemoryStore())

    async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.close()
        await writer.wait_closed()

    async def reads(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        data = await reader.read()
        writer.close()
        await writer.wait_closed()
        return data

    async with await asyncio.start_server(hangs_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await record(reads(port), store=MemoryStore()) == b"bye"

    async def waits(port: int) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(0.02):
                await reader.readline()
        except TimeoutError:
            return "timed out"
        finally:
            writer.close()
            await writer.wait_closed()
        return "read"

    async with echo() as port:
        assert await record(waits(port), store=MemoryStore()) == "timed out"


@in_loop
async def test_a_strict_guard_refuses(tmp_path: Path) -> None:
    @agent
    async def strict(port: int) -> list[str]:
        return await says(port, "a")

    async with echo() as port:
        with pytest.raises(NotSupported, match="create_connection"):
            await strict.arun(port, store=MemoryStore())
        with pytest.raises(NotSupported, match="create_connection"):
            await record(says(port, "a"), store=MemoryStore(), guard="strict")
        trace = await strict.arun(port, store=MemoryStore(), guard="virtual")
        assert trace.output == ["echo a"]


@in_loop
async def test_what_belongs_to_the_loop_around_says_where_it_can_be_awaited() -> None:
    around = asyncio.get_running_loop().create_future()

    async def main() -> None:
        await around

    with pytest.raises(RuntimeError, match="different loop") as raised:
        await record(main(), store=MemoryStore())
    assert any("with agentloom.record(" in note for note in raised.value.__notes__)
    around.cancel()
