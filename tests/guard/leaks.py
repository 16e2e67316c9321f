"""Every way out of pure code that is known, tried in a recorded run and, by another process, in its replay.

    python -m tests.guard.leaks record FOLDER      a run for each, under a strict guard
    python -m tests.guard.leaks replay FOLDER      and its replay; prints {name: what the guard does about it}

FOLDER holds two working folders, ``then`` and ``now``, each with another ``world.txt``; the caller changes hash seed,
time zone, variables and standard input between the two.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from agentloom import Trace
from agentloom.errors import LoomError
from agentloom.store import open_store

PROBES: dict[str, str] = {
    # clocks
    "time.time": "return time.time(), time.time_ns()",
    "time.monotonic, perf_counter": "return time.monotonic(), time.monotonic_ns(), time.perf_counter()",
    "time.process_time, thread_time": "return time.process_time(), time.thread_time_ns()",
    "time.clock_gettime": "return time.clock_gettime(0), time.clock_gettime_ns(time.CLOCK_MONOTONIC)",
    "time.localtime, gmtime": "return list(time.localtime()), list(time.gmtime()), time.localtime().tm_zone",
    "time.ctime, asctime, strftime": "return time.ctime(), time.asctime(), time.strftime('%c %Z')",
    "time.mktime": "return time.mktime((2026, 7, 1, 12, 0, 0, 0, 0, -1))",
    "from time import time": "return early_time(), early_defaults(), Early.clock(), early_cell()",
    "time.sleep": "time.sleep(0.01); return time.time()",
    "time.tzname, time.timezone": "return list(time.tzname), time.timezone",
    "datetime.now, utcnow, today": "t = datetime; return str((t.now(), t.now(UTC), t.utcnow(), t.today()))",
    "now = datetime.now": "return str(early_now())",
    "date.today": "return str(date.today()), str(early_today()), str(datetime.fromtimestamp(0))",
    "datetime.astimezone, timestamp": "return str(datetime(2026, 7, 1).astimezone()), datetime(2026, 7, 1).timestamp()",
    "a default factory": "return Stamped().at",
    "logging's time stamps": "return logging.makeLogRecord({}).created",
    # randomness and identifiers
    "random.random and the like": "return random.random(), random.choice(range(10**6)), early_choice(range(10**6))",
    "random.Random()": "return random.Random().random()",
    "random.SystemRandom": "return random.SystemRandom().random()",
    "_random.Random()": "return _random.Random().random()",
    "secrets": "return secrets.token_hex(8), secrets.randbelow(10**9), secrets.choice(range(10**6))",
    "os.urandom": "return os.urandom(8).hex(), early_urandom(8).hex()",
    "posix.urandom": "return posix.urandom(8).hex()",
    "os.getrandom": "return os.getrandom(8).hex(), posix.getrandom(8).hex()",
    "uuid.uuid1": "return str(uuid.uuid1())",
    "uuid.uuid4": "return str(uuid.uuid4()), str(early_uuid4())",
    "uuid.getnode": "return uuid.getnode()",
    "tempfile's names": "return next(tempfile._get_candidate_names())",
    # the process
    "os.environ": "return os.environ['PROBE'], os.environ.get('PROBE_2'), os.getenv('PROBE'), 'PROBE' in os.environ",
    "os.environ, listed": "return sorted(os.environ), len(os.environ)",
    "posix.environ": "return posix.environ.get(b'PROBE', b'').decode()",
    "os.getpid": "return os.getpid(), os.getppid()",
    "id()": "return id(object())",
    "hash() of a str": "return hash('a word')",
    "iteration over a set": "return list({'one', 'two', 'three', 'four', 'five'})",
    "hash(), repr() of a plain object": "return hash(Plain()), repr(Plain())",
    "sys.argv": "return sys.argv[1]",
    # files
    "open": "return open('world.txt').read()",
    "open, to write": "open('written.txt', 'w').close(); return 1",
    "Path.read_text": "return Path('world.txt').read_text()",
    "io.open, os.open": "return io.open('world.txt').read()",
    "os.listdir, scandir, glob": "return os.listdir('.')",
    "os.stat": "return os.stat('world.txt').st_size",
    "os.path.exists": "return os.path.exists('only_when_recorded'), Path('only_when_recorded').exists()",
    "posix.stat": "return posix.stat('world.txt').st_size",
    "posix.open": "return posix.read(posix.open('world.txt', os.O_RDONLY), 10).decode()",
    "os.getcwd": "return os.getcwd()",
    "sys.stdin": "return sys.stdin.readline()",
    "mmap of a file": "return mmap.mmap(os.open('world.txt', 0), 0, access=mmap.ACCESS_READ)[:1].decode()",
    "sqlite3, a file": "sqlite3.connect('probe.db').close(); return 1",
    "sqlite3, in memory": "return sqlite3.connect(':memory:').execute('select 1').fetchone()[0]",
    # the network, processes
    "socket.connect": "socket.create_connection(('127.0.0.1', 9)); return 1",
    "socket.bind": "socket.socket().bind(('127.0.0.1', 0)); return 1",
    "socket.getaddrinfo": "return socket.getaddrinfo('localhost', 80)[0][4]",
    "select": "return len(select.select([0], [], [], 0)[0])",
    "subprocess": "return subprocess.run(['true']).returncode",
    "os.system": "return os.system('true')",
    "os.fork": "if os.fork() == 0:\n    os._exit(0)\nreturn 1",
    "ctypes: a library": "return bool(ctypes.CDLL(None))",
    # concurrency
    "a lock": "return HELD.acquire(blocking=False)",
    "a thread's clock": "seen = []\nthread = threading.Thread(target=lambda: seen.append(time.time()))\n"
    "thread.start()\nthread.join()\nreturn seen",
    "_thread's clock": "seen = []\ndone = threading.Event()\n"
    "_thread.start_new_thread(lambda: (seen.append(time.time()), done.set()), ())\ndone.wait()\nreturn seen",
}

HEAD = """
import _random, _thread, asyncio, ctypes, dataclasses, io, logging, mmap, os, posix, random, secrets, select, socket
import sqlite3, subprocess, sys, tempfile, threading, time, uuid
from datetime import UTC, date, datetime
from os import urandom as early_urandom
from pathlib import Path
from random import choice as early_choice
from time import time as early_time
from uuid import uuid4 as early_uuid4

from agentloom import agent

early_now = datetime.now
early_today = date.today
HELD = threading.Lock()


class Plain:
    pass


class Early:
    clock = staticmethod(time.perf_counter)


@dataclasses.dataclass
class Stamped:
    at: float = dataclasses.field(default_factory=time.time)


def early_defaults(clock=time.monotonic):
    return clock()


def _closed(clock):
    return lambda: clock()


early_cell = _closed(time.time)

"""

Word = str  # virtual, refused, open


def program(folder: Path) -> ModuleType:
    """The module with an agent for each probe, imported before any guard is in place."""
    text = HEAD
    for number, code in enumerate(PROBES.values()):
        text += f"@agent(guard='strict')\ndef probe_{number}():\n{textwrap.indent(code, '    ')}\n\n"
    path = folder / "probes.py"
    path.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    return __import__("probes")


def agents(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for number, name in enumerate(PROBES):
        yield name, getattr(module, f"probe_{number}")


def record(folder: Path) -> None:
    """A run for each probe; what happened into ``recorded.json``: the run's id, or None where it was refused."""
    found: dict[str, str | None] = {}
    module = program(folder)
    module.HELD.acquire()
    for name, agent in agents(module):
        with quiet():
            try:
                found[name] = agent.run(store=open_store(folder / "store")).run_id
            except LoomError as error:
                if type(error).__name__ != "UnrecordedEffect":
                    raise
                found[name] = None
    (folder / "recorded.json").write_text(json.dumps(found), encoding="utf-8")


def replay(folder: Path) -> dict[str, Word]:
    """What the guard does about each."""
    found: dict[str, str | None] = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    words: dict[str, Word] = {}
    for name, agent in agents(program(folder)):
        run = found[name]
        if run is None:
            words[name] = "refused"
            continue
        with quiet():
            report = Trace.open(run, open_store(folder / "store")).replay(check=False, agent=agent)
        words[name] = "virtual" if report.verdict == "identical" else "open"
    return words


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


if __name__ == "__main__":
    at = Path(sys.argv[2]).resolve()
    if sys.argv[1] == "record":
        os.chdir(at / "then")
        record(at)
    else:
        os.chdir(at / "now")
        print(json.dumps(replay(at)))
