"""The memory store keeps the contract."""

from __future__ import annotations

from agentloom.store import MemoryStore, Store
from agentloom.testing.store_contract import Sample, StoreContract, fill


class TestMemoryStore(StoreContract):
    def make_store(self) -> Store:
        return MemoryStore()


def test_stores_share_nothing() -> None:
    first, second = MemoryStore(), MemoryStore()
    sample = Sample()
    fill(first, sample, sample.whole())
    assert second.runs() == []
    assert "1 runs" in repr(first)
