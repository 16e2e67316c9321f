"""Both stores against the model: writers that die, torn ends, second writers; and the machine can fail."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from agentloom.store import LocalStore, MemoryStore
from agentloom.store.appender import LocalAppender
from agentloom.store.base import Appender
from agentloom.testing.store_machine import StoreMachine

STEPS = settings(
    max_examples=20, stateful_step_count=30, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip


class MemoryMachine(StoreMachine):
    def make_store(self) -> MemoryStore:
        return MemoryStore()


class LocalMachine(StoreMachine):
    """Every step may be seen by another object on the same folder, and writers die as their processes would."""

    def make_store(self) -> LocalStore:
        self.folder = tempfile.mkdtemp(prefix="loom-")
        return LocalStore(self.folder + "/store")

    def crash(self, writer: Appender) -> None:
        assert isinstance(writer, LocalAppender)
        lease, fd, empty = writer._lease, writer._fd, writer._end == 0
        writer._disown()  # what the death of a process leaves: a closed descriptor, and all of its files
        assert lease is not None
        assert fd >= 0
        if empty:
            self.store.remove(writer.run)

    def tear(self, run: str, data: bytes) -> bool:
        assert isinstance(self.store, LocalStore)
        with open(self.store.path(run), "ab") as file:
            file.write(data)
        return True

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


MemoryMachine.TestCase.settings = LocalMachine.TestCase.settings = STEPS
TestMemoryMachine = MemoryMachine.TestCase
TestLocalMachine = LocalMachine.TestCase


class _Forgetful(MemoryStore):
    """Loses the second append of every run."""

    def create(self, run: str) -> Any:
        writer, count = super().create(run), 0
        real = writer.append

        def append(data: bytes) -> None:
            nonlocal count
            count += 1
            if count != 2:
                real(data)

        writer.append = append  # type: ignore[method-assign]
        return writer


class _TwoWriters(MemoryStore):
    """Never refuses a writer."""

    def reopen(self, run: str) -> Any:
        try:
            return super().reopen(run)
        except Exception:
            if self.read(run):
                return MemoryStore().create(run)
            raise


@pytest.mark.parametrize("wrong", [_Forgetful, _TwoWriters])
def test_the_machine_notices(wrong: type[MemoryStore]) -> None:
    """Otherwise it would prove nothing."""

    class Machine(MemoryMachine):
        def make_store(self) -> MemoryStore:
            return wrong()

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Machine,
            settings=settings(STEPS, max_examples=300, print_blob=False, report_multiple_bugs=False),
        )
