"""Events of Python as effects: their kind and their words."""

from __future__ import annotations

import os
import sysconfig
from typing import Any

import pytest

from agentloom.runtime.effects import READS, TABLE, Effect, comes_with_packages

EVENTS: dict[str, tuple[str, tuple[Any, ...], object]] = {
    "reading": ("open", ("a.txt", "r", os.O_RDONLY), ("file read", "reads a.txt")),
    "reading bytes": ("open", (b"a.txt", "rb", os.O_RDONLY), ("file read", "reads a.txt")),
    "writing": ("open", ("a.txt", "w", os.O_WRONLY | os.O_CREAT), ("file write", "writes a.txt")),
    "writing by flags": ("open", ("a.txt", None, os.O_RDWR), ("file write", "writes a.txt")),
    "a descriptor": ("open", (3, "r", os.O_RDONLY), None),
    "nowhere": ("open", (os.devnull, "w", os.O_WRONLY), None),
    "bytecode": ("open", ("p/__pycache__/m.pyc", None, os.O_WRONLY), None),
    "a package's file": ("open", (sysconfig.get_paths()["purelib"] + "/p/data.txt", "r", 0), None),
    "a time zone": ("open", ("/usr/share/zoneinfo/Europe/Paris", "rb", 0), None),
    "listing here": ("os.listdir", (None,), ("file read", "lists .")),
    "a database": ("sqlite3.connect", ("a.db",), ("database", "opens database a.db")),
    "a database in memory": ("sqlite3.connect", (":memory:",), None),
    "anonymous memory": ("mmap.__new__", (-1, 10, 0, 0), None),
    "a map to read": ("mmap.__new__", (3, 10, 1, 0), None),
    "a map to write": ("mmap.__new__", (3, 10, 0, 0), ("file write", "maps a file to write")),
    "a library": ("ctypes.dlopen", ("libm.so.6",), ("library", "loads the C library libm.so.6")),
    "its own library": ("ctypes.dlopen", (None,), ("library", "loads the C library of this process")),
    "a C function": ("ctypes.dlsym", (None, "fopen"), ("native", "calls C function fopen")),
    "a harmless C function": ("ctypes.dlsym", (None, "sqrt"), None),
    "an address": ("builtins.id", (1,), ("identity", "asks for the address of an object, id()")),
    "a connection": ("socket.connect", (None, ("h", 80)), ("network", "connects to h:80")),
    "a name": ("socket.getaddrinfo", ("h", 80), ("network", "looks up h")),
    "no name": ("socket.getaddrinfo", (None, 80), None),
    "a process": ("subprocess.Popen", ("ls", ["ls", "-l"], None, None), ("process", "starts process ls -l")),
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_a_kind_and_words(name: str) -> None:
    event, args, expected = EVENTS[name]
    assert TABLE[event](args) == expected


def test_an_effect_names_its_place_where_it_has_one() -> None:
    assert str(Effect("file read", "reads a", "p.py:3 f")) == "reads a (p.py:3 f)"
    assert str(Effect("file read", "reads a", "?")) == "reads a"


def test_reads_change_nothing() -> None:
    assert READS == {"file read", "library", "identity", "stdin", "readiness", "setting", "detail"}
    assert comes_with_packages(os.__file__)
    assert not comes_with_packages(os.path.abspath("a.txt"))
