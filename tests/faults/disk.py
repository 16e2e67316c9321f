"""A machine in memory: a disk behind a cache, processes with files and locks of their own, and power cuts.

What was not synced may be lost with the power, and how much of it is the seed's choice: contents of files are synced by
``fsync``, the names of files and folders by ``fsync`` of the folder that they are in. As POSIX has it, and worse than
most file systems are.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentloom.store.osfile import Os

__all__ = ["Dead", "Machine", "Process"]


class Dead(BaseException):
    """The process is dead, and does nothing more."""


@dataclass(eq=False, slots=True)
class _Node:
    """A file, or a folder (``names``: what is in it, and what of that is on the disk)."""

    number: int
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    names: dict[str, _Node] | None = None
    on_disk: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    locked: set[int] = field(default_factory=set[int])
    """Open descriptors that hold its lock."""
    shared: bool = False

    @property
    def folder(self) -> bool:
        return self.names is not None


@dataclass(slots=True)
class _Open:
    node: _Node
    append: bool
    at: int = 0


def _error(code: int, path: str = "") -> OSError:
    return OSError(code, os.strerror(code), path)


class Machine:
    """A disk, and the processes that run now."""

    def __init__(self) -> None:
        self.root = _Node(0, names={})
        self._numbers = 1
        self._descriptors = 100
        self.processes: list[Process] = []

    def process(self) -> Process:
        """A process that begins now."""
        made = Process(self)
        self.processes.append(made)
        return made

    def power_cut(self, rng: random.Random) -> None:
        """All processes die, and the disk is as it is: what was synced, and by chance some of the rest."""
        for process in self.processes:
            process.die()
        self.processes.clear()
        self._fall(self.root, rng)

    def _fall(self, node: _Node, rng: random.Random) -> None:
        names = node.names
        if names is None:
            node.data = bytearray(_left(bytes(node.data), node.synced, rng))
            node.synced = bytes(node.data)
            return
        for name in [name for name in names if name not in node.on_disk]:
            if rng.random() < 0.7:
                del names[name]
        for name, child in node.on_disk.items():
            if name not in names and rng.random() < 0.7:  # it was deleted, and is there again
                names[name] = child
        node.on_disk = dict(names)
        for child in names.values():
            self._fall(child, rng)

    # -- paths

    def node(self, path: str) -> _Node:
        found = self.root
        for name in _parts(path):
            if found.names is None:
                raise _error(errno.ENOTDIR, path)
            if name not in found.names:
                raise _error(errno.ENOENT, path)
            found = found.names[name]
        return found

    def place(self, path: str) -> tuple[dict[str, _Node], str]:
        parts = _parts(path)
        folder = self.node("/" + "/".join(parts[:-1]))
        if folder.names is None:
            raise _error(errno.ENOTDIR, path)
        return folder.names, parts[-1]

    def made(self, *, folder: bool = False) -> _Node:
        self._numbers += 1
        return _Node(self._numbers, names={} if folder else None)

    def descriptor(self) -> int:
        self._descriptors += 1
        return self._descriptors


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _left(now: bytes, synced: bytes, rng: random.Random) -> bytes:
    """What is on the disk of a file of which ``synced`` is safe and ``now`` was written."""
    if now == synced:
        return synced
    if not now.startswith(synced):  # cut off, or written over
        return rng.choice((now, synced, now[: rng.randint(0, len(now))]))
    tail = now[len(synced) :]
    kept = tail[: rng.randint(0, len(tail))] if rng.random() < 0.6 else b""
    zeros = rng.choice((0, 0, 0, len(tail) - len(kept)))  # the length came to the disk, the bytes did not
    return synced + kept + bytes(zeros)


class Process:
    """The operating system as one process sees it. ``trap`` is told of each operation before it happens, by its name
    and its path or descriptor; it may raise."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.alive = True
        self.trap: Callable[[str, object], None] = lambda name, what: None
        self.tears: float | None = None
        """The process dies at its next write, of which this share comes to the file."""
        self._files: dict[int, _Open] = {}

    def die(self) -> None:
        """The kernel closes what it had open, and gives its locks back."""
        self.alive = False
        for fd in list(self._files):
            self._closed(fd)

    def _closed(self, fd: int) -> None:
        self._files.pop(fd).node.locked.discard(fd)

    def _enter(self, name: str, what: object = None) -> Machine:
        if self.alive:
            self.trap(name, what)
        if not self.alive:
            raise Dead
        return self.machine

    def _file(self, fd: int) -> _Open:
        if fd not in self._files:
            raise _error(errno.EBADF)
        return self._files[fd]

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        machine = self._enter("open", path)
        names, name = machine.place(path) if _parts(path) else ({}, "")
        node = names.get(name) if name else machine.root
        if node is None:
            if not flags & os.O_CREAT:
                raise _error(errno.ENOENT, path)
            node = names[name] = machine.made()
        elif flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        if flags & os.O_TRUNC:
            node.data.clear()
        fd = machine.descriptor()
        self._files[fd] = _Open(node, bool(flags & os.O_APPEND))
        return fd

    def read(self, fd: int, count: int) -> bytes:
        self._enter("read", fd)
        file = self._file(fd)
        data = bytes(file.node.data[file.at : file.at + count])
        file.at += len(data)
        return data

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._enter("write", fd)
        if self.tears is not None:
            self._put(fd, bytes(data[: int(len(data) * self.tears)]))
            self.die()
            raise Dead
        self._put(fd, bytes(data))
        return len(data)

    def _put(self, fd: int, data: bytes) -> None:
        file = self._file(fd)
        at = len(file.node.data) if file.append else file.at
        file.node.data[at : at + len(data)] = data
        file.at = at + len(data)

    def seek(self, fd: int, offset: int) -> int:
        self._enter("seek", fd)
        self._file(fd).at = offset
        return offset

    def close(self, fd: int) -> None:
        self._enter("close", fd)
        self._file(fd)
        self._closed(fd)

    def _found(self, node: _Node) -> os.stat_result:
        kind = 0o040700 if node.folder else 0o100600
        return os.stat_result((kind, node.number, 1, 1, 0, 0, len(node.data), 0, 0, 0))

    def fstat(self, fd: int) -> os.stat_result:
        self._enter("fstat", fd)
        return self._found(self._file(fd).node)

    def stat(self, path: str) -> os.stat_result:
        return self._found(self._enter("stat", path).node(path))

    def ftruncate(self, fd: int, length: int) -> None:
        self._enter("ftruncate", fd)
        del self._file(fd).node.data[length:]

    def fsync(self, fd: int) -> None:
        self._enter("fsync", fd)
        self._synced(fd)

    def fdatasync(self, fd: int) -> None:
        self._enter("fdatasync", fd)
        self._synced(fd)

    def _synced(self, fd: int) -> None:
        node = self._file(fd).node
        if node.names is None:
            node.synced = bytes(node.data)
        else:
            node.on_disk = dict(node.names)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        machine = self._enter("mkdir", path)
        names, name = machine.place(path)
        if name in names:
            raise _error(errno.EEXIST, path)
        names[name] = machine.made(folder=True)

    def replace(self, source: str, target: str) -> None:
        machine = self._enter("replace", source)
        names, name = machine.place(source)
        node = machine.node(source)
        del names[name]
        there, called = machine.place(target)
        there[called] = node

    def link(self, source: str, target: str) -> None:
        machine = self._enter("link", target)
        node = machine.node(source)
        names, name = machine.place(target)
        if name in names:
            raise _error(errno.EEXIST, target)
        names[name] = node

    def unlink(self, path: str) -> None:
        machine = self._enter("unlink", path)
        machine.node(path)
        names, name = machine.place(path)
        del names[name]

    def rmdir(self, path: str) -> None:
        machine = self._enter("rmdir", path)
        if machine.node(path).names:
            raise _error(errno.ENOTEMPTY, path)
        names, name = machine.place(path)
        del names[name]

    def chmod(self, path: str, mode: int) -> None:
        self._enter("chmod", path).node(path)

    def listdir(self, path: str) -> Sequence[str]:
        names = self._enter("listdir", path).node(path).names
        if names is None:
            raise _error(errno.ENOTDIR, path)
        return list(names)

    def flock(self, fd: int, *, shared: bool = False) -> bool:
        self._enter("flock", fd)
        node = self._file(fd).node
        if node.locked - {fd} and not (shared and node.shared):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        node.locked.add(fd)
        node.shared = shared
        return True


_: Os = Machine().process()
