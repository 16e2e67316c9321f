"""The shipped contract can fail: a store that breaks a promise is caught by the test of that promise."""

from __future__ import annotations

import pytest

from agentloom.errors import StoreError
from agentloom.format.journal import check
from agentloom.store import MemoryStore, Query, RunRow, Store
from agentloom.testing.store_contract import Sample, StoreContract


def test_samples_are_valid_and_repeatable() -> None:
    first, again, other = (Sample(number).whole() for number in (3, 3, 4))
    assert first == again != other
    assert check(first).consistent
    assert Sample(3).run < Sample(4).run


class Forgetful(MemoryStore):
    """Loses the last entry on every reading."""

    def read(self, run: str) -> bytes:
        data = super().read(run)
        return data[: data.rfind(b"\n", 0, -1) + 1]


class Unsorted(MemoryStore):
    def runs(self, query: Query | None = None) -> list[RunRow]:
        return super().runs(query)[::-1]


class Trusting(MemoryStore):
    """Lets every writer in."""

    def _free(self, run: str) -> None:
        self._owners.pop(run, None)


@pytest.mark.parametrize(
    ("store", "promise"),
    [
        (Forgetful, "test_what_was_appended_is_read_byte_for_byte"),
        (Unsorted, "test_runs_are_listed_newest_first_with_their_facts"),
        (Trusting, "test_the_second_writer_is_told_who_writes"),
    ],
)
def test_a_broken_store_fails_the_contract(store: type[Store], promise: str) -> None:
    with pytest.raises((AssertionError, StoreError, pytest.fail.Exception)):
        getattr(StoreContract(), promise)(store())
    getattr(StoreContract(), promise)(MemoryStore())
