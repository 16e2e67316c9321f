"""Durability: where traces are kept, how they are written, found and read again (docs/store.md)."""

from __future__ import annotations

import os

from agentloom.errors import NotSupported
from agentloom.store.appender import checked_durability
from agentloom.store.base import Appender, Query, RunRow, Store
from agentloom.store.files import MAX_TRACE_BYTES, large_file, read_file, write_file
from agentloom.store.local import LocalStore
from agentloom.store.mail import Mail
from agentloom.store.memory import MemoryStore

__all__ = [
    "MAX_TRACE_BYTES",
    "Appender",
    "LocalStore",
    "Mail",
    "MemoryStore",
    "Query",
    "RunRow",
    "Store",
    "large_file",
    "open_store",
    "read_file",
    "write_file",
]

DEFAULT = ".agentloom"


def open_store(location: Store | str | os.PathLike[str] | None = None) -> Store:
    """The store at ``location`` (or that is ``location``), else at AGENTLOOM_STORE, else in ``.agentloom`` of the
    current folder.

    Nothing is made on the disk until the first run is written. ``:memory:`` is a new store of this process; other
    kinds of places (``s3://...``) are `NotSupported`. AGENTLOOM_DURABILITY=power makes every entry survive a power cut.
    """
    if isinstance(location, Store):
        return location
    if location is not None and not isinstance(location, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _no_store(location)
    place = os.fspath(location) if location is not None else os.environ.get("AGENTLOOM_STORE") or DEFAULT
    if place == ":memory:":
        return MemoryStore()
    if "://" in place:
        raise NotSupported(
            f"no store for {place!r} in this version: only folders and ':memory:'", hint="name a folder"
        )
    durability = os.environ.get("AGENTLOOM_DURABILITY") or "process"
    return LocalStore(os.path.expanduser(place), durability=checked_durability(durability))


def _no_store(given: object) -> TypeError:
    """The error for what is neither a place nor a store: which methods of one it lacks."""
    methods = [name for name in vars(Store) if not name.startswith("_") and callable(getattr(Store, name))]
    lacks = [name for name in methods if not hasattr(given, name)]
    what = f"{type(given).__module__}.{type(given).__qualname__}"
    if len(lacks) == len(methods):
        return TypeError(
            f"a store is a folder or an object with the methods of agentloom.store.Store, not {what}"
        )
    return TypeError(
        f"{what} is no store: it lacks {', '.join(lacks)} (agentloom.testing.store_contract holds a store to them)"
    )
