"""Unmodified scripts with threads, through the command line: recorded once, replayed in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.format.journal import Journal
from agentloom.store import open_store
from agentloom.testing import FakeProvider
from tests.cli.scripts import Scripts

SCRIPT = """
import asyncio, atexit, os, queue, random, sys, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed

def work(number):
    time.sleep(random.random() / 200)
    print("work", number, threading.current_thread().name, time.time())
    return number

def bad():
    raise LookupError("in a thread")

threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with ThreadPoolExecutor(2) as pool:
    print([future.result() for future in as_completed([pool.submit(work, number) for number in range(4)])])

async def main():
    print(await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(3))))

asyncio.run(main())
line = queue.Queue()

def consume():
    while True:
        print("got", line.get())

threading.Thread(target=consume, daemon=True).start()
threading.Thread(target=bad).start()
line.put(1)
threading.Timer(0.01, print, ("timer",)).start()
pool = ThreadPoolExecutor(2)
pool.submit(work, 8)
atexit.register(print, "at exit")
print("end of main")
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def test_a_script_with_threads_and_pools(scripts: Scripts) -> None:
    scripts.write(SCRIPT)
    done = scripts.call("run", str(scripts.folder / "agent.py"))
    assert done.code == 0, done.all
    assert done.out.index("end of main") < done.out.index("work 8") < done.out.index("at exit")
    assert "timer" in done.out
    assert "LookupError: in a thread" in done.err
    replayed = scripts.call("replay", "last")
    assert replayed.code == 0, replayed.all
    assert "IDENTICAL" in replayed.all


def test_models_asked_from_threads_are_recorded(scripts: Scripts) -> None:
    path = scripts.write("""
        import os, threading, httpx2
        from concurrent.futures import ThreadPoolExecutor

        def ask(number):
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"question {number}"}]}
            answer = client.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json=body).json()
            print(number, answer["choices"][0]["message"]["content"])

        with httpx2.Client(headers={"authorization": "Bearer none"}) as client, ThreadPoolExecutor(3) as pool:
            for number in range(4):
                pool.submit(ask, number)
            thread = threading.Thread(target=ask, args=(9,))
            thread.start()
            thread.join()
        """)
    with FakeProvider(lambda _: "an answer") as provider:
        done = scripts.call("run", str(path), env=provider.env())
    assert done.code == 0, done.all
    assert "not recorded: nothing" in done.all
    replayed = scripts.call("replay", "last")
    assert replayed.code == 0, replayed.all
    store = open_store(scripts.store)
    journal = Journal.parse(store.read(store.runs()[0].run))
    types = [entry["type"] for entry in journal.entries if entry["kind"] == "request"]
    assert types == ["model"] * 5


def test_a_script_that_serves_in_a_thread_is_not_broken(scripts: Scripts) -> None:
    path = scripts.write("""
        import socket, socketserver, threading

        class Answers(socketserver.BaseRequestHandler):
            def handle(self):
                self.request.sendall(b"seven")

        def serve():
            server.serve_forever(0.01)

        with socketserver.TCPServer(("127.0.0.1", 0), Answers) as server:
            threading.Thread(target=serve, name="server").start()
            with socket.create_connection(server.server_address) as connection:
                print(connection.recv(10).decode())
            server.shutdown()
        """)
    done = scripts.call("run", str(path))
    assert done.code == 0, done.all
    assert "seven" in done.out


def test_without_a_guard_threads_are_what_they_were(scripts: Scripts) -> None:
    path = scripts.write("""
        import threading, time
        thread = threading.Thread(target=print, args=("in a thread",))
        thread.start(); thread.join()
        """)
    done = scripts.call("run", "--guard", "off", str(path))
    assert (done.code, done.out) == (0, "in a thread\n")
    assert scripts.call("replay", "last").code == 0


def test_an_endless_wait_in_a_script_is_an_error(scripts: Scripts) -> None:
    path = scripts.write("""
        import threading
        lock = threading.Lock()
        def work():
            with lock:
                event.wait()
        event = threading.Event()
        threading.Thread(target=work, daemon=True).start()
        with lock:
            pass
        lock.acquire(); lock.acquire()
        """)
    done = scripts.call("run", str(path))
    assert done.code == 1
    assert "Deadlock: every thread of the run waits" in done.err
    assert "agent.py:" in done.err
    replayed = scripts.call("replay", "last")
    assert replayed.code == 0, replayed.all
