"""Locks in forked processes: free, whoever held them; and every lock of the package is such a one."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import ast
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom.runtime import guard_files, guard_ids, guard_install, locks, passed, seams
from agentloom.runtime.locks import free_in_children

SRC = Path(agentloom.__file__).parent
NOT_IN_CHILDREN = {
    "testing": "servers of tests: their threads are not in a child",
    "runtime/parking.py": "a gate is closed until somebody opens it",
    "cli/script_child.py": "of the process that a command starts, not of its children",
}
"""Whose locks no forked child asks for, and why."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked child that does ``work``: 0, or the signal that ended it when it hung."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 5)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def held_by_another(lock: Any, work: Callable[[], object]) -> int:
    """``in_child``, while another thread of the parent holds ``lock``."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        return in_child(work)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock])
def test_a_lock_that_another_thread_holds_is_free_in_a_child(kind: Callable[[], Any]) -> None:
    lock = free_in_children(kind())

    def work() -> None:
        with lock:
            pass

    assert held_by_another(lock, work) == 0
    work()


def test_a_lock_that_nobody_has_any_more_is_let_go() -> None:
    free_in_children(threading.Lock())
    gc.collect()
    before = len(locks._locks)
    kept = free_in_children(threading.Lock())
    assert len(locks._locks) == before + 1
    del kept
    assert len(locks._locks) == before


def ask_seams() -> None:
    seams._standing = seams._loaded = False
    seams.stand_by()
    seams.load_seams()


def lent() -> None:
    with guard_files._lock, guard_ids._lock, guard_install._lock:
        pass


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize(
    ("lock", "work"),
    [
        (passed._lock, lambda: passed.passes("tests.Forked")),
        (seams._lock, ask_seams),
        (guard_files._lock, lent),
        (guard_ids._lock, lent),
        (guard_install._lock, lent),
    ],
    ids=["passed", "seams", "files", "ids", "install"],
)
def test_what_the_runtime_asks_of_its_locks_goes_on_in_a_child(lock: Any, work: Callable[[], object]) -> None:
    assert held_by_another(lock, work) == 0


def made(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls that make a lock and are not handed to ``free_in_children`` at once."""
    free = {
        id(arg)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("free_in_children")
        for arg in node.args
    }
    for node in ast.walk(tree):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if (
            name.rpartition(".")[2] in ("Lock", "RLock", "allocate_lock", "Condition")
            and id(node) not in free
        ):
            assert isinstance(node, ast.Call)
            yield node


def test_every_lock_of_the_package_is_free_in_children() -> None:
    found = [
        f"{path.relative_to(SRC).as_posix()}:{node.lineno}"
        for path in sorted(SRC.rglob("*.py"))
        for node in made(ast.parse(path.read_text("utf-8")))
        if "type(" not in path.read_text("utf-8").splitlines()[node.lineno - 1]
    ]
    found = [place for place in found if not place.startswith(tuple(NOT_IN_CHILDREN))]
    assert found == [], "wrap it in agentloom.runtime.locks.free_in_children"
