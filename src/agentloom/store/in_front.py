"""A store in front of another one, which does what is not said otherwise."""

from __future__ import annotations

from agentloom.store.base import Appender, Query, RunRow, Store
from agentloom.store.mail import Mail

__all__ = ["InFront"]

_ALL = Query()


class InFront:
    """Hands everything on to ``store``, for classes that do some of it differently."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def behind(self) -> Store:
        """The store that it stands in front of."""
        return self._store

    def create(self, run: str) -> Appender:
        """As the store does."""
        return self._store.create(run)

    def reopen(self, run: str) -> Appender:
        """As the store does."""
        return self._store.reopen(run)

    def read(self, run: str) -> bytes:
        """As the store does."""
        return self._store.read(run)

    def runs(self, query: Query = _ALL) -> list[RunRow]:
        """As the store does."""
        return self._store.runs(query)

    def resolve(self, ref: str) -> str:
        """As the store does."""
        return self._store.resolve(ref)

    def add(self, data: bytes) -> str:
        """As the store does."""
        return self._store.add(data)

    def remove(self, run: str) -> None:
        """As the store does."""
        self._store.remove(run)

    def post(self, run: str, mail: Mail) -> None:
        """As the store does."""
        self._store.post(run, mail)

    def mail(self, run: str) -> list[Mail]:
        """As the store does."""
        return self._store.mail(run)
