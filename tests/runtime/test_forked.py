"""Processes that a run's code forks: no part of the run, and as plain as without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scripts import Scripts, clean

PROCESS = """
    import multiprocessing, time

    def work(queue):
        queue.put(42)
        time.sleep(0.01)

    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    process = fork.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=20))
    process.join()
    print(process.exitcode)
    time.sleep(1)
    print("parent goes on")
    """

POOL = """
    import multiprocessing, time
    from concurrent.futures import ProcessPoolExecutor

    def work(number):
        time.sleep(0.01)
        return number * number

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        print(list(pool.map(work, range(4))))
    """

PLAIN = """
    import asyncio, os, queue, random, signal, sys, threading, time, uuid

    before = signal.getsignal(signal.SIGINT).__name__
    os.environ["OF_THE_PROGRAM"] = "kept"
    child = os.fork()
    if child == 0:
        begun = time.monotonic()
        time.sleep(0.05)
        assert time.monotonic() - begun < 10, "the clock is that of the system"
        assert abs(time.time() - os.stat(__file__).st_mtime) < 600
        assert os.environ["OF_THE_PROGRAM"] == "kept"
        assert uuid.uuid4() != uuid.uuid4() and random.random() != random.random()
        found = queue.Queue()
        thread = threading.Thread(target=lambda: (time.sleep(0.01), found.put("thread")))
        thread.start()
        print("child", found.get(), asyncio.run(asyncio.sleep(0.01, "task")), input(), flush=True)
        thread.join()
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    time.sleep(1)
    print("parent goes on")
    """

IN_A_THREAD = """
    import os, threading, time

    lock, got = threading.Lock(), []

    def forks():
        child = os.fork()
        if child == 0:
            with lock:
                time.sleep(0.01)
            os._exit(4)
        got.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    threads = [threading.Thread(target=forks) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(got)
    """


@pytest.mark.parametrize(
    "text", [PROCESS, POOL, PLAIN, IN_A_THREAD], ids=["process", "pool", "plain", "thread"]
)
def test_a_forked_child_runs_as_it_does_without_agentloom(tmp_path: Path, text: str) -> None:
    scripts = Scripts(tmp_path)
    done = scripts.run(text, given="typed\n")
    bare = subprocess.run(
        [sys.executable, "-W", "ignore", "agent.py"],
        cwd=scripts.folder, input="typed\n", capture_output=True, text=True, check=True, env=clean(), timeout=60,
    )  # fmt: skip
    assert done.code == 0, done.all
    assert done.out == bare.stdout, done.all
    assert "Traceback" not in done.err
    assert "forks a process" in done.err
    assert scripts.recording().status == "completed"
