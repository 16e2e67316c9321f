"""Random sequences of operations: the local store answers as the memory store does."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from agentloom.errors import LoomError
from agentloom.store import LocalStore, MemoryStore, Query
from agentloom.store import index as index_module
from agentloom.store.base import Appender
from agentloom.testing.store_contract import Sample

TAGS = ("ann", "bob", "Ünder")
AGENTS = ("support", "cleanup")


def outcome(function: Callable[[], Any]) -> object:
    """What came out: a value, or the type of the error and the facts that it holds."""
    try:
        return function()
    except LoomError as error:
        facts = {name: error.fields.get(name) for name in ("run", "matches", "count", "ref", "line", "pid")}
        return type(error).__name__, facts


class Stores(RuleBasedStateMachine):
    """The same operations on both stores; every answer is compared at once."""

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="loom-")
        self.local = LocalStore(self.folder + "/store")
        self.memory = MemoryStore()
        self.samples: dict[int, Sample] = {}
        self.parts: dict[int, list[bytes]] = {}
        self.writers: dict[int, tuple[Appender, Appender]] = {}
        # Half of the sequences keep rows of fresh files in the index, the others always read again.
        self.settled = index_module._SETTLED
        index_module._SETTLED = -(10**18)

    def teardown(self) -> None:
        index_module._SETTLED = self.settled
        for pair in self.writers.values():
            for writer in pair:
                writer.close()
        shutil.rmtree(self.folder)

    def same(self, ask: Callable[[Any], Any]) -> object:
        first, second = outcome(lambda: ask(self.local)), outcome(lambda: ask(self.memory))
        assert first == second
        return first

    @rule(
        target=runs,
        number=st.integers(0, 6),
        tag=st.none() | st.sampled_from(TAGS),
        agent=st.sampled_from(AGENTS),
        calls=st.integers(0, 2),
        status=st.sampled_from(["completed", "failed", "cancelled"]),
    )
    def prepare(self, number: int, tag: str | None, agent: str, calls: int, status: str) -> int:
        if number not in self.samples:
            sample = Sample(number, agent=agent, tags={"user": tag} if tag else None, conversation=tag)
            parts = [sample.start()]
            for call in range(calls):
                parts += sample.call("tool", f"tool{call}", value=f"{tag} said so")
            parts += [sample.mark("tag", {"late": "yes"}), sample.mark("flag", "odd"), sample.end(status)]
            parts.append(sample.mark("note", "after the end"))
            self.samples[number], self.parts[number] = sample, parts
        return number

    def run_of(self, number: int) -> str:
        return self.samples[number].run

    @rule(number=runs, how=st.sampled_from(["create", "reopen"]))
    def open(self, number: int, how: str) -> None:
        made: list[Any] = []

        def attempt(store: Any) -> str:
            made.append(getattr(store, how)(self.run_of(number)))
            return f"{how} cut {made[-1].cut}"

        if self.same(attempt) == f"{how} cut 0":
            self.writers[number] = (made[0], made[1])

    @rule(number=runs, count=st.integers(1, 4))
    def append(self, number: int, count: int) -> None:
        pair = self.writers.get(number)
        if pair is None:
            return
        have = self.memory.read(self.run_of(number))
        written = 0
        for part in self.parts[number]:
            written += len(part)
            if written > len(have) and count:
                count -= 1
                for writer in pair:
                    writer.append(part)

    @rule(number=runs)
    def close(self, number: int) -> None:
        for writer in self.writers.pop(number, ()):
            writer.close()

    @rule(number=runs, whole=st.booleans(), cut=st.integers(0, 60))
    def add(self, number: int, whole: bool, cut: int) -> None:
        parts = self.parts[number]
        data = b"".join(parts if whole else parts[:2])
        self.same(lambda store: store.add(data[: len(data) - cut]))

    @rule(number=runs)
    def remove(self, number: int) -> None:
        self.same(lambda store: store.remove(self.run_of(number)))

    @rule(number=runs)
    def read(self, number: int) -> None:
        self.same(lambda store: store.read(self.run_of(number)))

    @rule(
        number=runs,
        how=st.sampled_from(["id", "start", "end", "short", "last", "late=yes", "yes", *TAGS, "nobody", ""]),
    )
    def resolve(self, number: int, how: str) -> None:
        run = self.run_of(number)
        ref = {"id": run, "start": run[:7], "end": run[-5:], "short": run[:3]}.get(how, how)
        self.same(lambda store: store.resolve(ref))

    @rule(
        query=st.builds(
            Query,
            tag=st.none() | st.sampled_from([*TAGS, "late=yes"]),
            since=st.none() | st.builds(lambda number: Sample(number).started, st.integers(0, 6)),
            failed=st.booleans(),
            tool=st.none() | st.sampled_from(["tool0", "tool1", "tool9"]),
            text=st.none() | st.sampled_from(["SAID", "ünder", "Ünder said", "bob said"]),
            limit=st.none() | st.integers(0, 3),
            agent=st.none() | st.sampled_from(AGENTS),
            conversation=st.none() | st.sampled_from(TAGS),
        )
    )
    def ask(self, query: Query) -> None:
        self.same(lambda store: store.runs(query))

    @precondition(lambda self: self.samples)
    @rule()
    def lose_the_index(self) -> None:
        shutil.rmtree(self.folder + "/store/index.sqlite", ignore_errors=True)
        try:
            with open(self.folder + "/store/index.sqlite", "r+b") as file:
                file.truncate(5000)
        except FileNotFoundError:
            pass

    @rule()
    def another_object_sees_the_same(self) -> None:
        self.local = LocalStore(self.local.root)

    @invariant()
    def lists_agree(self) -> None:
        self.same(lambda store: store.runs())


Stores.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStores = Stores.TestCase
