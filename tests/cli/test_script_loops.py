"""Processes, servers, descriptors and signals of a script's loop: they pass while it is recorded, are named, and a
replay stops at the line."""

from __future__ import annotations

import sys

import pytest

from tests.cli.scripts import Scripts

PROCESSES = """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); sys.exit(3)",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, err = await process.communicate(b"hello")
    print(out, err, process.returncode, await process.wait())
    shell = await asyncio.create_subprocess_shell("echo one; echo two >&2; cat", stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    shell.stdin.write(b"three\\n" * 50_000)
    lines = 0
    async def read():
        nonlocal lines
        async for line in shell.stdout:
            lines += 1
    reading = asyncio.create_task(read())
    await shell.stdin.drain()
    shell.stdin.close()
    await reading
    print(lines, await shell.wait())
    sleeper = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.wait_for(sleeper.wait(), 0.05)
    except TimeoutError:
        sleeper.terminate()
    print(await sleeper.wait())
    both = await asyncio.gather(*(
        asyncio.create_subprocess_exec("echo", str(n), stdout=asyncio.subprocess.PIPE) for n in range(3)))
    print([(await one.communicate())[0] for one in both])
    try:
        await asyncio.create_subprocess_exec("there-is-no-such-program")
    except FileNotFoundError as error:
        print("not found", error.filename)
"""
SERVERS = """
    async def handle(reader, writer):
        while line := await reader.readline():
            writer.write(b"echo " + line)
            await writer.drain()
        writer.close()
    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async def ask(word):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(word + b"\\n")
            answer = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return answer
        print(await asyncio.gather(ask(b"a"), ask(b"b")), server.is_serving())
    forever = asyncio.create_task((await asyncio.start_server(handle, "127.0.0.1", 0)).serve_forever())
    await asyncio.sleep(0.01)
    forever.cancel()
    print(await asyncio.gather(forever, return_exceptions=True))
    class Protocol(asyncio.DatagramProtocol):
        def connection_made(self, transport): self.got = asyncio.get_running_loop().create_future()
        def datagram_received(self, data, addr): self.got.set_result(data)
    loop = asyncio.get_running_loop()
    one, there = await loop.create_datagram_endpoint(Protocol, local_addr=("127.0.0.1", 0))
    two, _ = await loop.create_datagram_endpoint(Protocol, remote_addr=one.get_extra_info("sockname"))
    two.sendto(b"datagram")
    print(await there.got)
    one.close(); two.close()
"""
DESCRIPTORS = """
    import socket
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False); right.setblocking(False)
    got, done = [], loop.create_future()
    def read():
        got.append(left.recv(2))
        if len(got) == 3:
            done.set_result(None)
    loop.add_reader(left, read)
    def write():
        loop.remove_writer(right)
        right.send(b"aabbcc")
    loop.add_writer(right.fileno(), write)
    await done
    print(got, loop.remove_reader(left), loop.remove_reader(left), loop.remove_writer(right))
    await loop.sock_sendall(right, b"more")
    print(await loop.sock_recv(left, 10))
    left.close(); right.close()
    end, start = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(end, "rb"))
    os.write(start, b"through a pipe")
    os.close(start)
    print(await reader.read())
    transport.close()
"""
SIGNALS = """
    import signal
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, came.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await came.wait()
    print("came", loop.remove_signal_handler(signal.SIGUSR1), loop.remove_signal_handler(signal.SIGUSR1))
"""


def script(body: str) -> str:
    return f"import asyncio, os, sys\nasync def main():{body}\nasyncio.run(main())\n"


@pytest.mark.parametrize(
    ("body", "told", "line"),
    [
        (PROCESSES, f"starts process {sys.executable}", "agent.py:3"),
        (SERVERS, "listens on 127.0.0.1:0", "agent.py:8"),
        (DESCRIPTORS, "waits until a descriptor can be read", "agent.py:12"),
        (SIGNALS, "receives SIGUSR1", "agent.py:7"),
    ],
    ids=["processes", "servers", "descriptors", "signals"],
)
def test_what_needs_the_system_passes_and_is_told(scripts: Scripts, body: str, told: str, line: str) -> None:
    text = script(body)
    done = scripts.run(text)
    bare = scripts.bare()
    assert bare.code == 0, bare.err
    assert done.out == bare.out, done.all
    assert done.code == 0, done.all
    assert "not recorded:" in done.err
    assert told in done.err, done.err
    assert scripts.recording().gaps
    again = scripts.replay()
    assert again.code == 3, again.all
    assert line in again.out, again.all


def test_a_handler_that_no_signal_comes_to_is_nothing_to_record(scripts: Scripts) -> None:
    body = SIGNALS.replace("    os.kill(os.getpid(), signal.SIGUSR1)\n    await came.wait()\n", "")
    done = scripts.run(script(body))
    assert done.out == "came True False\n", done.all
    assert "not recorded: nothing" in done.err, done.err
    assert scripts.replay().code == 0


def test_under_strict_it_stays_refused(scripts: Scripts) -> None:
    path = scripts.write(script(PROCESSES))
    done = scripts.call("run", "--guard", "strict", str(path))
    assert done.code == 1
    assert "subprocess_exec() is not supported inside a run" in done.err, done.err
