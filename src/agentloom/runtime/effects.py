"""Effects as data: which events of Python say that a program touches the world, and in what words.

Each event of the table gives a kind and a text, or None where nothing is touched (a file opened by its number, a
database in memory). Who acts on it is ``refuse.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from agentloom.runtime.places import LIBRARIES, in_site

__all__ = [
    "DIRECT",
    "NOBODY",
    "READS",
    "RUNS_ONLY",
    "TABLE",
    "WRAPPED",
    "WRITE_FLAGS",
    "Effect",
    "Effects",
    "Found",
    "Kind",
    "comes_with_packages",
]

Kind = Literal[
    "file write",
    "file read",
    "database",
    "network",
    "process",
    "native",
    "library",
    "identity",
    "stdin",
    "readiness",
    "setting",
    "tool",
    "detail",
]
"""``native``: a C function that reaches the world; ``library``: a C library that is loaded; ``identity``: an address
or a number of this process; ``readiness``: whether a descriptor or a lock is ready now; ``setting``: something of this
process that a replay does anew; ``detail``: something about a recorded call that the trace cannot hold."""

RUNS_ONLY: frozenset[Kind] = frozenset(("library", "identity", "stdin", "readiness", "setting"))
"""What harms a run under a guard alone, in which it is no part of the record."""

READS: frozenset[Kind] = frozenset((*RUNS_ONLY, "file read", "detail"))
"""What changes nothing: seen only where the program's own code does it, and let through unless the guard is strict."""

DIRECT: frozenset[Kind] = frozenset((*READS, "native"))
"""What counts only where the program's own code does it, with nothing but the standard library between: packages read
their own files and look up C functions all the time."""


NOBODY = "?"
"""Where an effect is that none of the program's own code is on the stack of."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One attempt. ``where`` is ``file:line function`` of the program's own code, or ``NOBODY``."""

    kind: Kind
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where != NOBODY else self.what


class Effects(Protocol):
    """Is told of effects. ``attempt`` may raise, and then the effect does not happen."""

    def attempt(self, effect: Effect) -> None: ...


Found = tuple[Kind, str] | None

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Flags of ``os.open`` any of which says that a file may be changed."""


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return os.fsdecode(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(cast("os.PathLike[str]", value))
    return value if isinstance(value, str) else repr(value)


def comes_with_packages(name: str) -> bool:
    """Whether a file is part of Python, of an installed package (the trace holds their versions) or of the system's
    time zones, which C code reads."""
    return name.startswith(LIBRARIES) or in_site(name) or f"{os.sep}zoneinfo{os.sep}" in name


def _opened(args: tuple[Any, ...]) -> Found:
    path, mode, flags = (*args, None, None, None)[:3]
    if isinstance(path, int):
        return None  # a descriptor that is open already
    name = _text(path)
    writing = bool(flags & WRITE_FLAGS) if isinstance(flags, int) else False
    if isinstance(mode, str):
        writing = writing or any(letter in mode for letter in "wax+")
    if not writing:
        return None if comes_with_packages(name) else ("file read", f"reads {name}")
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
    name = _text(args[0]) if args and args[0] is not None else "."
    return None if comes_with_packages(name) else ("file read", f"lists {name}")


def _database(args: tuple[Any, ...]) -> Found:
    name = _text(args[0]) if args else ""
    if name in (":memory:", "") or name.startswith("file::memory:"):
        return None  # lives and dies in this process
    return "database", f"opens database {name}"


def _mapped(args: tuple[Any, ...]) -> Found:
    descriptor, _, access = args[:3]
    if descriptor == -1:
        return None  # memory of this process alone
    # Reading what is open already was judged when it was opened.
    return None if access == _ACCESS_READ else ("file write", "maps a file to write")


_ACCESS_READ = 1  # mmap.ACCESS_READ


def _loads(args: tuple[Any, ...]) -> Found:
    return "library", "loads the C library " + ("of this process" if args[0] is None else _text(args[0]))


def _identified(_: tuple[Any, ...]) -> Found:
    return "identity", "asks for the address of an object, id()"


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


TABLE: dict[str, Callable[[tuple[Any, ...]], Found]] = {
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
    "ctypes.dlopen": _loads,
    "ctypes.dlsym": _c_function,
    "mmap.__new__": _mapped,
    "builtins.id": _identified,
    "syslog.syslog": lambda _: ("file write", "writes to the system's log"),
    "os.fork": _forks,
    "os.forkpty": _forks,
    "os.kill": _signals,
    "os.killpg": _signals,
}

WRAPPED: tuple[tuple[str, str, Kind, str], ...] = (
    # Raise no audit event on some supported Python; wrapped by name, where the name exists.
    ("os", "mkfifo", "file write", "makes a pipe"),
    ("os", "mknod", "file write", "makes a file"),
    ("_posixsubprocess", "fork_exec", "process", "starts a process"),
    ("signal", "pidfd_send_signal", "process", "sends a signal to a process"),
    ("_posixshmem", "shm_open", "file write", "opens shared memory"),
    ("_gdbm", "open", "file write", "opens a database"),
    ("_dbm", "open", "file write", "opens a database"),
)
