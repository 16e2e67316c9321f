"""Files in a scope that allows them: what is read is a host call, recorded once and served on replay.

While such a scope is active somewhere, ``open`` and the functions of ``os`` that read are replaced in their modules;
otherwise ``open`` is Python's own. A file that was read comes as a real file object on an unnamed copy of the recorded
bytes, when recording too, so that decoding, newlines, seeking and ``fileno()`` are Python's.
"""

from __future__ import annotations

import builtins
import io
import locale
import os
import stat as stats
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any, Self, TypeVar, cast

from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.effects import WRITE_FLAGS
from agentloom.runtime.finding import is_upkeep
from agentloom.runtime.guard_allow import on_scopes, reason_for
from agentloom.runtime.guard_env import Recorded
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.scope import current, require
from agentloom.runtime.work import Work, doing, under_way

__all__ = ["at_place", "find_moved", "replace_readers", "served", "stat_of"]

PathArg = Any
T = TypeVar("T")
_open, _os_open, _listdir, _scandir = builtins.open, os.open, os.listdir, os.scandir
_WORK = Work("file")
_READ_MODES = frozenset("rbtU")


def served(frame: Any) -> bool:
    """Whether what reads files here is a host call: inside a run with a guard, in a scope that allows it, and not for
    the upkeep of Python itself (imports, source lines, time zones)."""
    scope = current()
    return (
        scope is not None
        and scope.session.guard.virtual
        and reason_for("file read") is not None
        and under_way() is None
        and not is_upkeep(frame)
    )


def at_place(function: Callable[..., T], path: PathArg, *args: Any, **kwargs: Any) -> T:
    """``function`` of where ``path`` is to be found; what it raises names ``path``."""
    found = _located(path)
    if found is path:
        return function(path, *args, **kwargs)
    try:
        return function(found, *args, **kwargs)
    except OSError as error:
        if error.filename == found:
            error.filename = os.fspath(path)
        raise


def _located(path: PathArg) -> PathArg:
    """Where ``path`` is to be found: a replay in another folder than the recording's finds below its own what the run
    names by the recorded one. Not so what lies with the program, which is where it is now, and source lines."""
    scope = current()
    environment = None if scope is None else scope.session.guard.environment
    if (
        scope is None
        or not isinstance(environment, Recorded)
        or environment.moved is None
        or isinstance(path, int)
        or path is None
    ):
        return path
    then, now = environment.moved
    text = os.fsdecode(path)
    if text != then and not text.startswith(os.path.join(then, "")):
        return path
    root = scope.session.engine.places.root
    if text == root or text.startswith(os.path.join(root, "")):
        return path
    if is_upkeep(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        return path
    found = now + text[len(then) :]
    return os.fsencode(found) if isinstance(path, bytes) else found


def _read(operation: str, path: PathArg, perform: Callable[[Call], object], **more: object) -> Any:
    """One read as a host call. Its path is relative to the program's folder where it lies there, so that a replay in
    another folder asks for the same."""
    request: dict[str, object] = {"path": os.fsdecode(path)}
    root = os.path.join(require("file").session.engine.places.root, "")
    for text in (
        os.fsdecode(path),
        os.fsdecode(_located(path)),
    ):  # the program may have moved with the folder, or not
        if text.startswith(root):
            request = {"path": text[len(root) :], "base": "program"}
            break
    return call_inline(CallSpec("file", operation, request | more, effect="read"), perform)


# -- contents ----------------------------------------------------------------------------------------------------------


def _contents(path: PathArg) -> bytes:
    """All of a regular file. Raises ``NotSupported`` for a device or a pipe, which may have no end."""
    with _open(path, "rb") as file:
        if not stats.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotSupported(
                f"{os.fsdecode(path)} is a device or a pipe and cannot be recorded as a file",
                hint="read it in a tool",
                path=os.fsdecode(path),
            )
        return file.read()


def _copy(data: bytes) -> int:
    """A descriptor of an unnamed file that holds ``data``, at its beginning."""
    with doing(_WORK):
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("agentloom")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor


def _opened(
    file: PathArg,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[str, int], int] | None = None,
) -> IO[Any]:
    """``open`` while a scope that allows files is active somewhere."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    reads = isinstance(mode, str) and "r" in mode and _READ_MODES.issuperset(mode)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not reads or isinstance(file, int) or opener is not None or not served(frame):
        return cast(
            "IO[Any]",
            at_place(cast(Any, _open), file, mode, buffering, encoding, errors, newline, closefd, opener),
        )
    text = "b" not in mode

    def perform(_: Call) -> dict[str, object]:
        found: dict[str, object] = {"data": _contents(file)}
        if text and encoding is None:
            found["encoding"] = "utf-8" if sys.flags.utf8_mode else locale.getencoding()
        return found

    found = _read("read", file, perform)
    chosen = encoding if encoding is not None else found.get("encoding")
    made: Any = cast(Any, _open)(_copy(found["data"]), mode, buffering, chosen, errors, newline)
    raw: Any = made.buffer.raw if text else getattr(made, "raw", made)
    raw.name = file  # as open() leaves it; not the number of the copy
    return cast("IO[Any]", made)


def _os_opened(path: PathArg, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    """``os.open`` in the same way; a folder, or a path below a descriptor, is opened for real."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    if (
        flags & WRITE_FLAGS
        or flags & getattr(os, "O_DIRECTORY", 0)
        or dir_fd is not None
        or not served(frame)
    ):
        return (
            at_place(_os_open, path, flags, mode)
            if dir_fd is None
            else _os_open(path, flags, mode, dir_fd=dir_fd)
        )
    return _copy(_read("read", path, lambda _: {"data": _contents(path)})["data"])


# -- folders -----------------------------------------------------------------------------------------------------------


def _listed(path: PathArg = None) -> list[Any]:
    if isinstance(path, int) or not served(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        return cast("list[Any]", at_place(cast(Any, _listdir), path))
    return cast(
        "list[Any]", _read("list", "." if path is None else path, lambda _: cast(Any, _listdir)(path))
    )


def _scanned(path: PathArg = None) -> Any:
    if isinstance(path, int) or not served(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        return at_place(cast(Any, _scandir), path)
    folder = cast(Any, "." if path is None else os.fspath(path))

    def perform(_: Call) -> list[list[object]]:
        with cast(Any, _scandir)(path) as entries:
            return [_facts(entry) for entry in entries]

    return _Entries([_Entry(folder, *facts) for facts in _read("scan", folder, perform)])


def _facts(entry: Any) -> list[object]:
    flags = [entry.is_dir(), entry.is_dir(follow_symlinks=False)]
    flags += [entry.is_file(), entry.is_file(follow_symlinks=False), entry.is_symlink()]
    return [entry.name, flags, entry.inode()]


class _Entry:
    """As ``os.DirEntry``, from what was recorded of it."""

    __slots__ = ("_flags", "_inode", "name", "path")

    def __init__(self, folder: Any, name: Any, flags: list[bool], inode: int) -> None:
        self.name = name
        self.path: Any = os.path.join(folder, name)
        self._flags = flags
        self._inode = inode

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._flags[0 if follow_symlinks else 1]

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._flags[2 if follow_symlinks else 3]

    def is_symlink(self) -> bool:
        return self._flags[4]

    def is_junction(self) -> bool:
        return False

    def inode(self) -> int:
        return self._inode

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


class _Entries:
    """As what ``os.scandir`` returns."""

    def __init__(self, entries: list[_Entry]) -> None:
        self._left = iter(entries)

    def __iter__(self) -> Iterator[_Entry]:
        return self

    def __next__(self) -> _Entry:
        return next(self._left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._left = iter(())


# -- facts -------------------------------------------------------------------------------------------------------------


def stat_of(original: Callable[..., os.stat_result], path: PathArg, *, follow: bool) -> os.stat_result:
    """What the system knows of a file, as a host call; ``original`` asks it."""

    def perform(_: Call) -> list[object]:
        _, (fields, more) = cast(Any, original(path)).__reduce__()
        return [list(fields), more]

    fields, more = _read("stat", path, perform, follow=follow)
    return os.stat_result(fields, more)


# -- where -------------------------------------------------------------------------------------------------------------

_lock = free_in_children(threading.Lock())
_active = 0
_installed = False
_moving = False


def replace_readers() -> None:
    """From now on a scope that allows files replaces what reads them while it lasts. Done once in a process."""
    global _installed
    if not _installed:
        _installed = True
        on_scopes(_enter, _leave)


def find_moved() -> None:
    """From now on what reads files is replaced: a run that is replayed here looks for them in another folder. Once."""
    global _moving
    if not _moving:
        _moving = True
        _enter()


def _enter() -> None:
    global _active
    with _lock:
        _active += 1
        if _active == 1:
            _set(_opened, _os_opened, _listed, _scanned)


def _leave() -> None:
    global _active
    with _lock:
        _active -= 1
        if _active == 0:
            _set(_open, _os_open, _listdir, _scandir)


def _set(opened: Any, os_opened: Any, listed: Any, scanned: Any) -> None:
    modules = cast(Any, builtins), cast(Any, io), cast(Any, os)
    modules[0].open = modules[1].open = opened
    modules[2].open, modules[2].listdir, modules[2].scandir = os_opened, listed, scanned
    globber: Any = getattr(sys.modules.get("glob"), "_StringGlobber", None)  # pathlib of 3.13 has its own
    if globber is not None:
        globber.scandir = staticmethod(scanned)
