"""The seams of SDKs stand by: from the first run of a process on, without this layer knowing any of them.

Adapters register by entry point, group ``agentloom.seams``: a function without arguments that patches what is loaded
and sees to what will be. They are loaded when the program has, or imports, one of the libraries that SDKs send their
requests with; a program without them pays nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import cast

from agentloom.runtime.locks import free_in_children
from agentloom.runtime.scope import run_outside

__all__ = ["CARRIERS", "load_seams", "stand_by"]

CARRIERS = frozenset(
    (
        "agents", "aiohttp", "anthropic", "botocore", "google.genai", "grpc", "httpx", "httpx2", "langchain_core",
        "langgraph", "llama_index.core", "mcp", "openai", "pydantic_ai", "requests", "smolagents", "urllib.request",
        "urllib3", "workflows",
    )
)  # fmt: skip
"""Modules that bring the seams in. A seam for a library of another name calls ``load_seams`` when it is imported."""

_GROUP = "agentloom.seams"
_OWN = "agentloom.adapters.sdks:watch"
"""The adapters of this package, also where its metadata is not installed (a source tree, an archive on the path)."""

_lock = free_in_children(threading.RLock())
_standing = _loaded = False


class _Finder(importlib.abc.MetaPathFinder):
    """Loads the seams before the first of the carriers is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in CARRIERS:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        load_seams()
        return importlib.util.find_spec(fullname)  # again, now by the finders of the seams


def stand_by() -> None:
    """See to it that calls of SDKs are recorded: called by every run that begins. Cheap after the first time."""
    global _standing
    if _standing:
        return
    with _lock:
        if CARRIERS.isdisjoint(sys.modules):
            sys.meta_path.insert(0, _Finder())  # a second one, of another thread, finds the seams loaded
        else:
            load_seams()
        _standing = True


def load_seams() -> None:
    """Have every registered adapter look after its SDK, once a process. One that cannot be loaded is named in a
    warning: the program goes on, and calls of that SDK are not recorded."""
    global _loaded
    with _lock:
        if _loaded:
            return
        _loaded = True
        run_outside(_load)


def _load() -> None:
    from importlib import metadata

    found = {entry.value: entry for entry in metadata.entry_points(group=_GROUP)}
    found.setdefault(_OWN, metadata.EntryPoint("default", _OWN, _GROUP))
    for entry in sorted(found.values(), key=lambda entry: (entry.name, entry.value)):
        try:
            watch = cast("Callable[[], None]", entry.load())
        except (ImportError, AttributeError) as error:
            warnings.warn(
                f"the adapter {entry.name} ({entry.value}) cannot be loaded: {error}."
                " What it is for is not recorded; upgrade the package that brings it, or remove it",
                RuntimeWarning,
                stacklevel=2,
            )
        else:
            watch()
