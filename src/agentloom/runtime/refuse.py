"""Effects that a program attempts outside every host call: found by one audit hook and a few wrappers.

Python raises audit events for opening files, changing the file system, databases, sockets and processes. While a
``Watch`` is armed, each such event that does not come from host work goes to its ``Effects``: a recorder notes it (it
is not in the trace), a replayer refuses it by raising. What raises no event in C code is not seen here; the operating
system has to refuse that.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, Protocol, cast

from agentloom.runtime.places import Places
from agentloom.runtime.work import under_way

__all__ = ["Effect", "Effects", "Kind", "Watch"]

Kind = Literal["file write", "file read", "database", "network", "process", "native", "tool"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One attempt. ``where`` is ``file:line function`` of the program's own code, ``?`` when none is on the stack."""

    kind: Kind
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where != "?" else self.what


class Effects(Protocol):
    """Is told of effects. ``attempt`` may raise, and then the effect does not happen."""

    def attempt(self, effect: Effect) -> None: ...


Found = tuple[Kind, str] | None

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return os.fsdecode(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(cast("os.PathLike[str]", value))
    return value if isinstance(value, str) else repr(value)


def _opened(args: tuple[Any, ...]) -> Found:
    path, mode, flags = (*args, None, None, None)[:3]
    if isinstance(path, int):
        return None  # a descriptor that is open already
    name = _text(path)
    writing = bool(flags & _WRITING) if isinstance(flags, int) else False
    if isinstance(mode, str):
        writing = writing or any(letter in mode for letter in "wax+")
    if not writing:
        return "file read", f"reads {name}"
    if name == os.devnull or f"{os.sep}__pycache__{os.sep}" in name:
        return None  # nowhere, or the interpreter's own cache
    return "file write", f"writes {name}"


def _changes(verb: str) -> Callable[[tuple[Any, ...]], Found]:
    def find(args: tuple[Any, ...]) -> Found:
        return "file write", f"{verb} {_text(args[0]) if args else ''}".rstrip()

    return find


def _makes_folder(args: tuple[Any, ...]) -> Found:
    name = _text(args[0])
    if os.path.basename(name) == "__pycache__":
        return None  # the interpreter's own cache
    return "file write", f"makes folder {name}"


def _renames(args: tuple[Any, ...]) -> Found:
    if f"{os.sep}__pycache__{os.sep}" in _text(args[1]):
        return None
    return "file write", f"renames {_text(args[0])} to {_text(args[1])}"


def _lists(args: tuple[Any, ...]) -> Found:
    return "file read", f"lists {_text(args[0]) if args and args[0] is not None else '.'}"


def _database(args: tuple[Any, ...]) -> Found:
    name = _text(args[0]) if args else ""
    if name in (":memory:", "") or name.startswith("file::memory:"):
        return None  # lives and dies in this process
    return "database", f"opens database {name}"


def _authorizer(action: int, name: str | None, *_: object) -> int:
    """Sees what no audit event tells: a database in memory that attaches a file, or is copied into one.

    Called by SQLite when it compiles a statement; ``name`` is None where the file is no literal. 0 allows it; an
    exception denies it.
    """
    if action == _SQLITE_ATTACH and name not in ("", ":memory:") and _armed is not None:
        _armed.saw(("database", f"attaches database {name or '(a computed name)'}"))
    return 0


_SQLITE_ATTACH = 24


def _c_function(args: tuple[Any, ...]) -> Found:
    name = str(args[1])
    return ("native", f"calls C function {name}") if name in _TOUCHES_THE_WORLD else None


_TOUCHES_THE_WORLD = frozenset(
    "system popen fork vfork clone execl execle execlp execv execve execvp execvpe posix_spawn posix_spawnp syscall"
    " open open64 openat openat64 creat fopen fopen64 freopen write pwrite fwrite unlink unlinkat remove rename"
    " renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat truncate truncate64 chmod fchmodat chown"
    " mknod mkfifo socket connect bind send sendto sendmsg kill killpg tgkill getaddrinfo gethostbyname".split()
)
"""Functions of the C library that a program may reach through ctypes past every audit event."""


def _connects(verb: str, at: int) -> Callable[[tuple[Any, ...]], Found]:
    def find(args: tuple[Any, ...]) -> Found:
        address: Any = args[at] if len(args) > at else ""
        if type(address) is tuple:
            address = ":".join(map(str, cast(Any, address)[:2]))
        return "network", f"{verb} {_text(address)}"

    return find


def _looks_up(args: tuple[Any, ...]) -> Found:
    host: Any = args[0] if args else None
    return None if host is None else ("network", f"looks up {_text(host)}")


def _starts(at: int) -> Callable[[tuple[Any, ...]], Found]:
    def find(args: tuple[Any, ...]) -> Found:
        command: Any = args[at] if len(args) > at else None
        if isinstance(command, (list, tuple)):
            command = " ".join(_text(part) for part in cast("list[Any]", command))
        return "process", "starts a process" if command is None else f"starts process {_text(command)}"

    return find


def _forks(_: tuple[Any, ...]) -> Found:
    return "process", "forks a process"


def _signals(args: tuple[Any, ...]) -> Found:
    return "process", f"sends signal {args[1]} to process {args[0]}"


_TABLE: dict[str, Callable[[tuple[Any, ...]], Found]] = {
    "open": _opened,
    "os.remove": _changes("removes"),
    "os.rmdir": _changes("removes folder"),
    "os.mkdir": _makes_folder,
    "os.rename": _renames,
    "os.link": _changes("links"),
    "os.symlink": _changes("links"),
    "os.truncate": _changes("truncates"),
    "os.chmod": _changes("changes mode of"),
    "os.chown": _changes("changes owner of"),
    "os.chflags": _changes("changes flags of"),
    "os.utime": _changes("changes times of"),
    "os.setxattr": _changes("changes attributes of"),
    "os.removexattr": _changes("changes attributes of"),
    "os.listdir": _lists,
    "os.scandir": _lists,
    "sqlite3.connect": _database,
    "dbm.open": _changes("opens database"),
    "socket.connect": _connects("connects to", 1),
    "socket.bind": _connects("listens on", 1),
    "socket.sendto": _connects("sends to", 1),
    "socket.sendmsg": _connects("sends to", 1),
    "socket.getaddrinfo": _looks_up,
    "socket.gethostbyname": _looks_up,
    "socket.gethostbyaddr": _looks_up,
    "webbrowser.open": _connects("opens in a browser", 0),
    "subprocess.Popen": _starts(1),
    "os.system": _starts(0),
    "os.exec": _starts(1),
    "os.posix_spawn": _starts(1),
    "os.spawn": _starts(2),
    "os.startfile": _starts(0),
    "pty.spawn": _starts(0),
    "ctypes.dlsym": _c_function,
    "syslog.syslog": lambda _: ("file write", "writes to the system's log"),
    "os.fork": _forks,
    "os.forkpty": _forks,
    "os.kill": _signals,
    "os.killpg": _signals,
}

_WRAPPED: tuple[tuple[str, str, Kind, str], ...] = (
    # Raise no audit event on some supported Python; wrapped by name, where the name exists.
    ("os", "mkfifo", "file write", "makes a pipe"),
    ("os", "mknod", "file write", "makes a file"),
    ("_posixsubprocess", "fork_exec", "process", "starts a process"),
    ("signal", "pidfd_send_signal", "process", "sends a signal to a process"),
    ("_posixshmem", "shm_open", "file write", "opens shared memory"),
    ("_gdbm", "open", "file write", "opens a database"),
    ("_dbm", "open", "file write", "opens a database"),
)


class Watch:
    """Sees the effects of one program. ``places`` tells its own code from libraries.

    ``everything``: also effects without any of the program's own code on the stack (a library's thread); a recorder
    leaves those out, because host work on other threads looks the same.
    """

    def __init__(self, effects: Effects, places: Places, *, everything: bool) -> None:
        self._effects = effects
        self._places = places
        self._everything = everything
        self._busy = threading.local()

    def arm(self) -> None:
        """Watch from now on, to the end of the process. One watch at a time in a process."""
        global _armed
        if _armed is not None:
            raise RuntimeError("another watch is armed in this process")
        _install()
        _armed = self

    @contextmanager
    def armed(self) -> Generator[None]:
        """Watch while the block runs."""
        global _armed
        self.arm()
        try:
            yield
        finally:
            _armed = None

    @contextmanager
    def aside(self) -> Generator[None]:
        """While the block runs, what this thread does is agentloom's own work and not the program's."""
        before = getattr(self._busy, "now", False)
        self._busy.now = True
        try:
            yield
        finally:
            self._busy.now = before

    def saw(self, found: Found) -> None:
        """Judge one event; may raise what ``Effects.attempt`` raises."""
        if found is None or under_way() is not None or getattr(self._busy, "now", False):
            return
        kind, what = found
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        if _is_probe(frame):
            return
        self._busy.now = True
        try:
            own, direct = self._find(frame)
            if kind in _DIRECT and not direct:
                return
            if own is None and not self._everything:
                return
            self._effects.attempt(Effect(kind, what, own or "?"))
        finally:
            self._busy.now = False

    def _find(self, frame: FrameType | None) -> tuple[str | None, bool]:
        """The innermost frame of the program's own code, and whether only the standard library lies below it."""
        direct = True
        while frame is not None:
            code = frame.f_code
            name = self._places.name(code)
            if name is not None:
                return f"{name}:{frame.f_lineno} {code.co_name}", direct
            if direct and not _is_plain_library(code.co_filename):
                direct = False
            frame = frame.f_back
        return None, False


_DIRECT: frozenset[Kind] = frozenset(("file read", "native"))
"""What counts only where the program's own code does it, with nothing but the standard library between: packages
read their own files and look up C functions all the time."""
_STDLIB = os.path.dirname(os.__file__) + os.sep
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def _is_probe(frame: FrameType | None) -> bool:
    """Whether ``tempfile`` looks for a folder that can be written: it leaves nothing there, and who only asks for the
    folder's name wrote nothing."""
    for _ in range(3):
        if frame is None:
            return False
        code = frame.f_code
        if code.co_name == "_get_default_tempdir" and code.co_filename == f"{_STDLIB}tempfile.py":
            return True
        frame = frame.f_back
    return False


def _is_plain_library(filename: str) -> bool:
    """The standard library without its import system (modules are read by importing them, which is not an effect)."""
    if filename.startswith("<frozen importlib"):
        return False
    if filename.startswith("<"):
        return True
    if filename.endswith((f"{os.sep}linecache.py", f"{os.sep}tokenize.py")):
        return False  # the interpreter showing source lines
    return filename.startswith(_STDLIB) and not any(part in filename for part in _PACKAGES)


_armed: Watch | None = None
_installed = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    watch = _armed
    if watch is None:
        return
    find = _TABLE.get(event)
    if find is not None:
        watch.saw(find(args))


def _install() -> None:
    global _installed
    if _installed:
        return
    _installed = True
    sys.addaudithook(_hook)
    for module_name, name, kind, what in _WRAPPED:
        try:
            module: Any = sys.modules.get(module_name) or __import__(module_name)
        except ImportError:
            continue  # this Python was built without it
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _wrapper(original, (kind, what)))
    _watch_attaching()


def _watch_attaching() -> None:
    try:
        import _sqlite3
        import sqlite3
        import sqlite3.dbapi2
    except ImportError:
        return  # this Python was built without it
    connect = sqlite3.connect

    @functools.wraps(connect)
    def connected(*args: Any, **kwargs: Any) -> Any:
        connection = connect(*args, **kwargs)
        if _armed is not None and under_way() is None:
            connection.set_authorizer(_authorizer)
        return connection

    for module in cast("tuple[Any, ...]", (_sqlite3, sqlite3, sqlite3.dbapi2)):
        module.connect = connected


def _wrapper(original: Callable[..., Any], found: tuple[Kind, str]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if _armed is not None:
            _armed.saw(found)
        return original(*args, **kwargs)

    wrapped.__name__ = original.__name__
    return wrapped
