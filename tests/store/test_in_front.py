"""A store in front of another one keeps the contract, and nothing of its own."""

from __future__ import annotations

from agentloom.store import MemoryStore, Store
from agentloom.store.in_front import InFront
from agentloom.testing.store_contract import Sample, StoreContract, fill


class TestInFront(StoreContract):
    def make_store(self) -> Store:
        return InFront(MemoryStore())


def test_everything_is_in_the_store_behind() -> None:
    behind, sample = MemoryStore(), Sample()
    fill(InFront(behind), sample, sample.whole())
    assert [row.run for row in behind.runs()] == [sample.run]
