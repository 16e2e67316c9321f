"""What tests of the runtime share: a place to append to that can fail, a source with scripted answers, whole runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from agentloom import Agent, Trace
from agentloom.errors import StoreFailed
from agentloom.format.journal import Journal
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.engine import Engine
from agentloom.runtime.ledger import TraceLedger
from agentloom.runtime.places import Places
from agentloom.runtime.profiles import Profile
from agentloom.runtime.registry import TYPES
from agentloom.runtime.session import Session
from agentloom.store import MemoryStore
from agentloom.store.base import Appender

WAIT = 20.0
"""Seconds after which a thread that should have ended is a deadlock."""


class Tape:
    """Takes appends. From append number ``fail_at`` (from 1) on every one raises ``StoreFailed``."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.parts: list[bytes] = []
        self.fail_at = fail_at

    def append(self, data: bytes) -> None:
        if self.fail_at is not None and len(self.parts) + 1 >= self.fail_at:
            raise StoreFailed("the disk is full")
        self.parts.append(data)

    @property
    def journal(self) -> Journal:
        return Journal.parse(b"".join(self.parts))

    @property
    def kinds(self) -> list[str]:
        return [str(entry["kind"]) for entry in self.journal.entries]


class Scripted:
    """An outcome source that hands over what the test put into ``coming``, and remembers what it was told."""

    def __init__(self) -> None:
        self.on_arrival: Callable[[], None] | None = None
        self.recorded_rule: Callable[[Callable[[], str], CallSpec, Profile], Profile] | None = None
        self.coming: deque[Any] = deque()
        self.told: list[tuple[str, object]] = []
        self.closed = 0
        self.raises: BaseException | None = None

    def _tell(self, what: str, detail: object) -> None:
        self.told.append((what, detail))
        if self.raises is not None:
            raise self.raises

    def begin(self, call: Call) -> None:
        self._tell("begin", call.id)

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        return Arrival("outcome", call, value=perform(), vt=self.now())

    def start(self, call: Call, perform: Callable[[], Awaitable[object]]) -> None:
        self._tell("start", call.id)

    def goes_on(self) -> bool:
        return False

    def never_made(self, call_id: str) -> bool:
        return False

    def rests(self, timer: int | None) -> None:
        pass

    def turn_due(self, vt: int) -> bool:
        return False

    def turn(self, timer: int | None) -> Arrival | None:
        return None

    def start_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        self.coming.append(self.inline(call, perform))

    def prepare_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        self.coming.append(self.inline(call, perform))

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        self._tell("open", call.id)

    def want(self, call: Call) -> None:
        self._tell("want", call.id)

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        self._tell("open", call.id)

    def next_inline(self, call: Call) -> Arrival:
        made: Arrival = self.coming.popleft()(call)
        return made

    def cancel(self, call: Call, status: str) -> None:
        self._tell("cancel", (call.id, status))

    def ended(self, call: Call, status: str, tree: object) -> None:
        self._tell("ended", (call.id, status, tree))

    def interrupt(self) -> bool:
        return False

    def poll(self, timer: int | None) -> Arrival | None:
        return self.coming.popleft() if self.coming else None

    def state(self, entry: Any) -> None:
        self._tell("state", (entry.call, entry.name, entry.tree, entry.reads))

    def finished(self, status: str, tree: object) -> None:
        self._tell("finished", (status, tree))

    def tick(self, shown: int, reads: int) -> int | None:
        return None

    def ticked(self, vt: int) -> None:
        self._tell("ticked", vt)

    def now(self) -> int:
        return 5

    def close(self) -> None:
        self.closed += 1


class Bench:
    """An engine on a tape with a scripted source, its start entry written, and the session around it."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.tape = Tape()
        self.source = Scripted()
        self.ledger = TraceLedger(self.tape.append, bytes, clock=lambda: 7)
        self.engine = Engine(self.ledger, self.source, nonce=bytes(32), types=TYPES, places=Places("/"))
        self.session = Session(self.engine, self.source, run_id="0" * 26, agent="probe", seed=3)
        payloads: dict[str, Any] = {"code": {}, "env": {}, "input": {}, "policy": {}}
        facts: dict[str, Any] = {
            "format": "loom", "version": "1.0", "run": "01hf7yat00260syt5szda5kqfb", "digest": "sha256", "flags": [],
            "keys": 1, "agent": "probe", "entry": "m:f", "seed": 3, "clock": {"start": 1, "resolution": 1}, "epoch": 1,
        }  # fmt: skip
        self.ledger.start(facts, payloads, bytes(32))
        self.tape.fail_at = fail_at

    def begin(self, name: str = "find", **request: object) -> Call:
        return self.engine.begin(CallSpec("tool", name, request, effect="read"), self.session.root)

    @property
    def kinds(self) -> list[str]:
        return self.tape.kinds

    def last(self) -> dict[str, Any]:
        return dict(self.tape.journal.entries[-1])

    def payload(self, name: str) -> Any:
        return self.tape.journal.tree(str(self.last()[name]))


class FailingStore(MemoryStore):
    """A memory store whose appends fail from number ``fail_at`` (from 1) on; ``appends`` counts those that held."""

    def __init__(self, fail_at: int) -> None:
        super().__init__()
        self.fail_at = fail_at
        self.appends = 0

    def create(self, run: str) -> Any:
        return _Failing(self, super().create(run))


class _Failing:
    def __init__(self, store: FailingStore, inner: Appender) -> None:
        self._store = store
        self._inner = inner
        self.cut = 0

    def append(self, data: bytes) -> None:
        if self._store.appends + 1 >= self._store.fail_at:
            raise StoreFailed("the disk is full")
        self._inner.append(data)
        self._store.appends += 1

    def close(self) -> None:
        self._inner.close()


def recorded(agent: Agent[..., Any], *args: object, **options: Any) -> Trace:
    """Run ``agent`` into a memory store and replay it: identical. The trace, whether it completed or raised."""
    store = MemoryStore()
    try:
        agent.run(*args, store=store, **options)
    except BaseException as error:  # noqa: BLE001 - whatever the agent raises; the trace tells
        raised: BaseException | None = error
    else:
        raised = None
    try:
        trace = Trace.open("last", store)
        report = trace.replay(agent=agent, check=False)
    except BaseException as unreadable:
        raise unreadable from raised
    assert report.verdict == "identical", str(report)
    return trace


def fails(agent: Agent[..., Any], *args: object, **options: Any) -> tuple[BaseException, Trace]:
    """As ``recorded``, for a run that raises: what it raised, and its trace, which replays."""
    store = MemoryStore()
    with pytest.raises(BaseException) as caught:
        agent.run(*args, store=store, **options)
    trace = Trace.open("last", store)
    report = trace.replay(agent=agent, check=False)
    assert report.verdict == "identical", str(report)
    return caught.value, trace


def in_time(work: Callable[[], object]) -> object:
    """The result of ``work``, run in a thread; fails when it does not come (a deadlock) instead of hanging."""
    result: list[object] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive(), "deadlock: it did not end in time"
    if errors:
        raise errors[0]
    return result[0]


def kinds_of(trace: Trace) -> list[str]:
    """The kinds of a trace's entries, in order."""
    return [str(entry["kind"]) for entry in trace.journal.entries]
