"""What is not adopted: threads of libraries with loops of their own, those that serve, loops that are not the run's."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import logging.handlers
import queue
import socketserver
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentloom import agent, tool
from tests.runtime.fakes import WAIT, in_time, recorded

LIBRARY = '''
import queue, threading, time
done = threading.Event()
class Exporter:
    """As the batch exporters of tracing libraries: a daemon that empties a queue."""
    def __init__(self):
        self.items, self.seen = queue.Queue(), []
        self.thread = threading.Thread(target=self._run, daemon=True, name="exporter")
        self.thread.start()
    def _run(self):
        while (item := self.items.get()) is not None:
            self.seen.append(item)
        done.set()
    def close(self):
        self.items.put(None)
        self.thread.join()
class Monitor(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True, name="monitor")
        self.over = threading.Event()
    def run(self):
        while not self.over.wait(0.001):
            pass
def side_by_side(*works):
    """What a library starts for its caller."""
    threads = [threading.Thread(target=lambda work=work: work()) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
'''


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A module that lies where packages are installed."""
    file: Path = tmp_path_factory.mktemp("env") / "site-packages" / "somebodys.py"
    file.parent.mkdir()
    file.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("somebodys", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["somebodys"] = module
    spec.loader.exec_module(module)
    return module


@tool(effect="read")
def find(number: int) -> int:
    return number


def foreign(trace: Any) -> list[Any]:
    notes = [
        trace.journal.tree(str(entry["val"])) for entry in trace.journal.entries if entry["kind"] == "note"
    ]
    return [(note["foreign_thread"], note["because"]) for note in notes if "foreign_thread" in note]


def test_a_daemon_of_a_library_stays_real_and_is_noted(library: ModuleType) -> None:
    seen: list[list[int]] = []

    @agent
    def exports() -> int:
        exporter = library.Exporter()
        monitor = library.Monitor()
        monitor.start()
        for number in range(3):
            exporter.items.put(number)
            find(number)
        exporter.close()
        monitor.over.set()
        monitor.join()
        seen.append(exporter.seen)
        return find(9)

    trace: Any = in_time(lambda: recorded(exports))
    assert seen == [[0, 1, 2]] * 2
    assert foreign(trace) == [("exporter", "library"), ("monitor", "library")]
    assert len(trace.calls) == 4


def test_what_a_library_starts_for_its_caller_is_the_runs(library: ModuleType) -> None:
    @agent
    def uses() -> list[int]:
        seen: list[int] = []
        library.side_by_side(lambda: seen.append(find(1)), lambda: seen.append(find(2)))
        return sorted(seen)

    trace = recorded(uses)
    assert trace.output == [1, 2]
    assert [call.id for call in trace.calls] == ["root/uses/thread[0]#1", "root/uses/thread[1]#1"]
    assert foreign(trace) == []


def test_the_standard_librarys_own_loops_are_foreign() -> None:
    class Keeps(logging.Handler):
        def __init__(self, records: list[str]) -> None:
            super().__init__()
            self.records = records

        def emit(self, record: logging.LogRecord) -> None:
            self.records.append(record.getMessage())

    @agent
    def logs() -> list[str]:
        records: list[str] = []
        line: queue.Queue[Any] = queue.Queue()
        listener = logging.handlers.QueueListener(line, Keeps(records))
        listener.start()
        log = logging.getLogger("probe of threads")
        log.propagate = False
        log.addHandler(logging.handlers.QueueHandler(line))
        log.warning("one")
        find(1)
        listener.stop()
        log.handlers.clear()
        return records

    trace: Any = in_time(lambda: recorded(logs))
    assert trace.output == ["one"]
    assert [because for _, because in foreign(trace)] == ["library"]


@pytest.mark.parametrize("own", [False, True], ids=["its loop", "a function"])
def test_a_thread_that_serves_is_let_go(own: bool) -> None:
    """Under a guard that lets sockets through, when recording: on replay they are refused, as ever."""
    from agentloom.store import MemoryStore

    @agent(guard="virtual")
    def serves() -> int:
        class Answers(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.sendall(b"7")

        server = socketserver.TCPServer(("127.0.0.1", 0), Answers)

        def serve() -> None:
            server.serve_forever(0.01)

        thread = threading.Thread(target=serve if own else server.serve_forever, name="server")
        thread.start()
        asked = ask(server.server_address[1])
        server.shutdown()
        thread.join()
        server.server_close()
        return asked

    @tool(effect="read")
    def ask(port: int) -> int:
        import socket

        with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
            return int(connection.recv(1))

    trace: Any = in_time(lambda: serves.run(store=MemoryStore()))
    assert trace.output == 7
    assert foreign(trace) == [("server", "loop" if own else "library")]


def test_a_loop_of_its_own_in_a_thread_lets_the_thread_go() -> None:
    @agent
    def loops() -> list[int]:
        seen: list[int] = []

        async def main() -> int:
            await asyncio.sleep(0.001)
            return 5

        thread = threading.Thread(target=lambda: seen.append(asyncio.run(main())), name="loop")
        thread.start()
        find(1)
        thread.join()
        return seen

    trace: Any = in_time(lambda: recorded(loops))
    assert trace.output == [5]
    assert foreign(trace) == [("loop", "loop")]


def test_a_loop_that_runs_for_ever_beside_the_agent() -> None:
    @agent
    def loops() -> list[int]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True, name="loop")
        thread.start()

        async def answers(number: int) -> int:
            await asyncio.sleep(0.001)
            return number * 2

        got = [asyncio.run_coroutine_threadsafe(answers(number), loop).result() for number in (1, find(2))]
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        return got

    trace: Any = in_time(lambda: recorded(loops))
    assert trace.output == [2, 4]
    assert foreign(trace) == [("loop", "library")]


def test_executors_under_a_loop_that_is_not_the_runs_are_answered_inline() -> None:
    @agent
    def loops() -> list[object]:
        async def main() -> list[object]:
            return await asyncio.gather(*(asyncio.to_thread(find, number) for number in range(3)))

        return asyncio.run(main())

    trace: Any = in_time(lambda: recorded(loops))
    assert trace.output == [0, 1, 2]
    assert len(trace.calls) == 3


def test_tools_are_refused_in_foreign_threads_while_the_run_goes_on(library: ModuleType) -> None:
    said: list[str] = []

    class Calls:
        def put(self, number: int) -> None: ...

    @agent
    def smuggles() -> None:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()

        def calls() -> None:
            try:
                find(1)
            except BaseException as error:  # noqa: BLE001 - which one is asked below
                said.append(type(error).__name__)
            loop.stop()

        loop.call_soon_threadsafe(calls)
        thread.join()
        loop.close()

    trace: Any = in_time(lambda: recorded(smuggles))
    assert said == ["NotSupported"] * 2
    assert trace.calls == []


def test_starting_a_thread_outside_of_a_run_is_what_it_was() -> None:
    def timed(start: Any) -> float:
        best = 1.0
        for _ in range(30):
            threads = [threading.Thread(target=int) for _ in range(10)]
            began = time.perf_counter()
            for thread in threads:
                start(thread)
            best = min(best, time.perf_counter() - began)
            for thread in threads:
                thread.join()
        return best

    from agentloom.runtime import threads as threads_module

    bare, ours = timed(threads_module._real_start), timed(threading.Thread.start)
    assert ours < bare * 2
