"""The memory behind the ``memory`` host function: get, put and search by key, in a backend that can be changed."""

from __future__ import annotations

from typing import Protocol

__all__ = ["DictMemory", "MemoryBackend", "memory_backend", "use_memory"]


class MemoryBackend(Protocol):
    """Where memories live. Values are plain data; ``search`` returns the best matches first."""

    def get(self, key: str) -> object: ...
    def put(self, key: str, value: object) -> None: ...
    def search(self, query: str, limit: int) -> list[dict[str, object]]: ...


class DictMemory:
    """Memories of this process. ``search`` counts the query's words in key and value, ignoring case."""

    def __init__(self) -> None:
        self._items: dict[str, object] = {}

    def get(self, key: str) -> object:
        """The value of ``key``, or None."""
        return self._items.get(key)

    def put(self, key: str, value: object) -> None:
        """Keep ``value`` under ``key``, instead of what was there."""
        self._items[key] = value

    def search(self, query: str, limit: int) -> list[dict[str, object]]:
        """Up to ``limit`` items that share words with ``query``: mappings with key, value and score."""
        words = query.lower().split()
        found: list[dict[str, object]] = []
        for key, value in self._items.items():
            text = f"{key} {value}".lower()
            score = sum(text.count(word) for word in words)
            if score:
                found.append({"key": key, "value": value, "score": score})
        found.sort(key=lambda item: (-int(str(item["score"])), str(item["key"])))
        return found[:limit]


_backend: MemoryBackend = DictMemory()


def memory_backend() -> MemoryBackend:
    """The backend in use."""
    return _backend


def use_memory(backend: MemoryBackend) -> MemoryBackend:
    """Use another backend for all later calls; returns the one before."""
    global _backend
    before, _backend = _backend, backend
    return before
