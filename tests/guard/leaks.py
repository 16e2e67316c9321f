"""Every way out of pure code that is known, tried in a recorded run and, by another process, in its replay.

    python -m tests.guard.leaks record FOLDER      a run for each, under a strict guard
    python -m tests.guard.leaks replay FOLDER      and its replay; prints {name: what the guard does about it}

FOLDER holds two working folders, ``then`` and ``now``, each with another ``world.txt``; the caller changes hash seed,
time zone, variables and standard input between the two.
"""

from __future__ import annotations

import contextlib
import grp
import io
import json
import locale
import mimetypes
import os
import pwd
import resource
import socket
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
    "time.pthread_getcpuclockid": "return time.clock_gettime(OWN_CLOCK)",
    "os.times": "return list(os.times())",
    "posix.times": "return list(posix.times())",
    "time.localtime, gmtime": "return list(time.localtime()), list(time.gmtime()), time.localtime().tm_zone",
    "time.ctime, asctime, strftime": "return time.ctime(), time.asctime(), time.strftime('%c %Z')",
    "time.mktime": "return time.mktime((2026, 7, 1, 12, 0, 0, 0, 0, -1))",
    "from time import time": "return early_time(), early_defaults(), Early.clock(), early_cell()",
    "time.sleep": "time.sleep(0.01); return time.time()",
    "time.tzname, time.timezone": "return list(time.tzname), time.timezone, time.altzone, time.daylight",
    "time.tzset": "time.tzset(); return 1",
    "datetime.now, utcnow, today": "t = datetime; return str((t.now(), t.now(UTC), t.utcnow(), t.today()))",
    "_datetime": "return str(_datetime.datetime.now()), str(_datetime.date.today())",
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
    "ssl.RAND_bytes": "return ssl.RAND_bytes(8).hex()",
    "_ssl.RAND_bytes": "return _ssl.RAND_bytes(8).hex()",
    "uuid.uuid1": "return str(uuid.uuid1())",
    "uuid.uuid4": "return str(uuid.uuid4()), str(early_uuid4())",
    "uuid.getnode": "return uuid.getnode()",
    "_uuid.generate_time_safe": "return _uuid.generate_time_safe()[0].hex()",
    "tempfile's names": "return next(tempfile._get_candidate_names())",
    # the process
    "os.environ": "return os.environ['PROBE'], os.environ.get('PROBE_2'), os.getenv('PROBE'), 'PROBE' in os.environ",
    "os.environ, listed": "return sorted(os.environ), len(os.environ)",
    "posix.environ": "return posix.environ.get(b'PROBE', b'').decode()",
    "os.getpid": "return os.getpid()",
    "os.getppid": "return os.getppid()",
    "os.getpgrp, getsid": "return os.getpgrp(), os.getsid(0)",
    "threading.get_ident": "return threading.get_ident()",
    "threading.get_native_id": "return threading.get_native_id()",
    "id()": "return id(object())",
    "hash() of a str": "return hash('a word')",
    "iteration over a set": "return list({'one', 'two', 'three', 'four', 'five'})",
    "hash(), repr() of a plain object": "return hash(Plain()), repr(Plain())",
    "sys.argv": "return sys.argv[1], sys.argv[1:2], len(sys.argv), [*sys.argv][1], 'record' in sys.argv",
    "sys.getrefcount": "return sys.getrefcount(HELD)",
    "sys.getallocatedblocks": "return sys.getallocatedblocks()",
    "sys.getsizeof": "return sys.getsizeof([1, 2, 3]), sys.getsizeof('a word')",
    "sys.platform, version, hash_info": "return sys.platform, sys.version, list(sys.hash_info)",
    "gc.get_count, get_objects": "return gc.get_count(), len(gc.get_objects())",
    "gc.collect": "return gc.collect()",
    "tracemalloc": "return tracemalloc.get_traced_memory()",
    "_tracemalloc": "return _tracemalloc.get_traced_memory()",
    "resource.getrusage": "return resource.getrusage(0).ru_maxrss",
    "resource.getrlimit": "return resource.getrlimit(resource.RLIMIT_NOFILE)",
    "resource.setrlimit": "return resource.setrlimit(3, resource.getrlimit(3))",
    "os.getuid, getgid, getgroups": "return os.getuid(), os.getgid(), os.getgroups(), os.geteuid(), early_getuid()",
    "os.getlogin": "return attempt(os.getlogin)",
    "pwd, grp": "return pwd.getpwuid(0).pw_dir, pwd.getpwnam('root').pw_uid, grp.getgrgid(0).gr_name",
    "getpass.getuser, Path.home": "return getpass.getuser(), str(Path.home()), os.path.expanduser('~')",
    "os.uname": "return list(os.uname()), os.uname().nodename",
    "platform": "return platform.platform(), platform.node(), list(platform.uname()), platform.machine(), "
    "platform.system(), platform.python_version()",
    "socket.gethostname": "return socket.gethostname()",
    "_socket.gethostname": "return _socket.gethostname(), _socket.if_nameindex()",
    "os.cpu_count": "return os.cpu_count(), multiprocessing.cpu_count(), len(os.sched_getaffinity(0))",
    "os.getloadavg": "return os.getloadavg()",
    "os.sysconf, confstr": "return os.sysconf('SC_NPROCESSORS_ONLN'), os.confstr('CS_PATH')",
    "os.get_terminal_size": "return shutil.get_terminal_size().columns, attempt(os.get_terminal_size)",
    "os.isatty": "return os.isatty(0), os.isatty(1), attempt(os.ttyname, 0)",
    "locale.getlocale": "return locale.getlocale(), locale.getpreferredencoding(), locale.localeconv(), "
    "locale.setlocale(locale.LC_ALL)",
    "_locale.localeconv": "return _locale.localeconv(), _locale.setlocale(_locale.LC_ALL), _locale.getencoding()",
    "locale.setlocale": "return locale.setlocale(locale.LC_ALL, 'C')",
    "_locale.setlocale": "return _locale.setlocale(_locale.LC_ALL, 'C')",
    "mimetypes.guess_type": "return mimetypes.guess_type('a.png'), mimetypes.guess_extension('image/png')",
    "os.umask": "return os.umask(0o22)",
    "os.nice": "return os.nice(0)",
    "signal.alarm, setitimer": "return signal.alarm(0)",
    "_signal.alarm": "return _signal.alarm(0)",
    # files
    "open": "return open('world.txt').read()",
    "open, to write": "open('written.txt', 'w').close(); return 1",
    "Path.read_text": "return Path('world.txt').read_text()",
    "io.open, os.open": "return io.open('world.txt').read()",
    "os.listdir, scandir, glob": "return os.listdir('.')",
    "os.stat": "return os.stat('world.txt').st_size",
    "os.path.exists": "return os.path.exists('only_when_recorded'), Path('only_when_recorded').exists()",
    "posix.stat": "return posix.stat('world.txt').st_size, posix.lstat('world.txt').st_size",
    "os.statvfs, shutil.disk_usage": "return shutil.disk_usage('.').free",
    "posix.open": "return posix.read(posix.open('world.txt', os.O_RDONLY), 10).decode()",
    "os.getcwd": "return os.getcwd(), os.getcwdb().decode(), str(Path.cwd()), os.path.abspath('x'), posix.getcwd()",
    "Path.resolve, os.path.realpath": "return str(Path('x').resolve()), os.path.realpath('x'), os.path.relpath('/x')",
    "os.chdir": "os.chdir('..'); return os.getcwd()",
    "sys.stdin": "return sys.stdin.readline()",
    "os.read of standard input": "return os.read(0, 10).decode()",
    "mmap of a file": "return mmap.mmap(os.open('world.txt', 0), 0, access=mmap.ACCESS_READ)[:1].decode()",
    "sqlite3, a file": "sqlite3.connect('probe.db').close(); return 1",
    "sqlite3, in memory": "return sqlite3.connect(':memory:').execute('select 1').fetchone()[0]",
    # the network, processes
    "socket.connect": "socket.create_connection(('127.0.0.1', 9)); return 1",
    "socket.bind": "socket.socket().bind(('127.0.0.1', 0)); return 1",
    "socket.getaddrinfo": "return socket.getaddrinfo('localhost', 80)[0][4]",
    "email.utils.make_msgid": "return email.utils.make_msgid()",
    "select": "return len(select.select([0], [], [], 0)[0])",
    "select, of nothing": "return select.select([], [], [], 0.01), time.time()",
    "select.poll": "p = select.poll(); p.register(0); return len(p.poll(0))",
    "select.epoll": "p = select.epoll(); p.register(WAKE[0]); return len(p.poll(0))",
    "selectors": "s = selectors.DefaultSelector(); s.register(WAKE[0], 1); return len(s.select(0))",
    "subprocess": "return subprocess.run(['true']).returncode",
    "os.system": "return os.system('true')",
    "os.fork": "if os.fork() == 0:\n    os._exit(0)\nreturn 1",
    "ctypes: a library": "return bool(ctypes.CDLL(None))",
    # concurrency
    "a lock": "return HELD.acquire(blocking=False)",
    "a thread's clock": "seen = []\nthread = threading.Thread(target=lambda: seen.append(time.time()))\n"
    "thread.start()\nthread.join()\nreturn seen",
    "names of threads": "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
    "    return threading.Thread().name, pool.submit(lambda: threading.current_thread().name).result()",
    "sets of futures": "made = {concurrent.futures.Future(): n for n in range(9)}\n"
    "return [made[future] for future in set(made)]",
    "_thread's clock": "seen = []\ndone = threading.Event()\n"
    "_thread.start_new_thread(lambda: (seen.append(time.time()), done.set()), ())\ndone.wait()\nreturn seen",
}

HEAD = """
import _datetime, _locale, _random, _signal, _socket, _ssl, _thread, _tracemalloc, _uuid
import asyncio, concurrent.futures, ctypes, dataclasses, email.utils, gc, getpass, grp, io, locale
import logging, mimetypes, mmap, multiprocessing, os, platform, posix, pwd, random, resource, secrets, select
import selectors, shutil, signal, socket, sqlite3, ssl, subprocess, sys, tempfile, threading, time, tracemalloc, uuid
from datetime import UTC, date, datetime
from os import getuid as early_getuid, urandom as early_urandom
from pathlib import Path
from random import choice as early_choice
from time import time as early_time
from uuid import uuid4 as early_uuid4

from agentloom import agent

early_now = datetime.now
early_today = date.today
HELD = threading.Lock()
BEFORE = [threading.Thread() for _ in os.environ["PROBE"]]  # another number of them in each world
WAKE = os.pipe()
OWN_CLOCK = time.pthread_getcpuclockid(threading.main_thread().ident)


def attempt(ask, *args):
    try:
        return list(ask(*args))
    except OSError as error:
        return repr(error)


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


def another_machine() -> None:
    """From now on this process says that it is another user's, on another machine. It has no guard yet."""
    names = {"getuid": 7, "getgid": 7, "geteuid": 7, "getgroups": [7], "cpu_count": 99, "getloadavg": (9.0, 9.0, 9.0),
             "sched_getaffinity": {1, 2, 3, 4, 5}, "isatty": True, "getlogin": "somebody", "ttyname": "/dev/tty9",
             "sysconf": 99, "confstr": "/elsewhere"}  # fmt: skip
    for name, value in names.items():
        setattr(os, name, _saying(name, value))
    system: Any = os
    system.uname = _saying("uname", os.uname_result(["Other", "elsewhere", "1", "1", "m68k"]))
    system.get_terminal_size = _saying("get_terminal_size", os.terminal_size((33, 3)))
    somebody = pwd.struct_passwd(["somebody", "x", 7, 7, "", "/home/somebody", "/bin/sh"])
    pwd.getpwuid, pwd.getpwnam = _saying("getpwuid", somebody), _saying("getpwnam", somebody)
    grp.getgrgid = _saying("getgrgid", grp.struct_group(["some", "x", 7, []]))
    socket.gethostname = _saying("gethostname", "elsewhere")
    resource.getrlimit = _saying("getrlimit", (7, 7))
    locale.getlocale = _saying("getlocale", ("de_DE", "latin-1"))
    locale.getpreferredencoding = _saying("getpreferredencoding", "latin-1")
    locale.localeconv = _saying("localeconv", {"decimal_point": ","})
    mimetypes.guess_type = _saying("guess_type", ("image/x-other", None))
    mimetypes.guess_extension = _saying("guess_extension", ".other")


def _saying(name: str, value: Any) -> Any:
    def says(*_: Any, **__: Any) -> Any:
        return value

    says.__name__ = says.__qualname__ = name
    return says


def replay(folder: Path) -> dict[str, Word]:
    """What the guard does about each."""
    found: dict[str, str | None] = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    words: dict[str, Word] = {}
    module = program(folder)
    another_machine()
    for name, agent in agents(module):
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
