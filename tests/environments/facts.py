"""What must be the same bytes in every environment: digests of traces, keys, reports and program logs, as JSON.

Run as ``python -m tests.environments.facts``.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from agentloom.format.canonical import canonical
from agentloom.format.digests import request_key
from agentloom.format.journal import Journal, check
from agentloom.format.values import Types, decode, encode
from agentloom.replay.replayer import replay
from agentloom.store import MemoryStore, Query
from agentloom.testing.store_contract import Sample
from tests.fuzz.mutations import mutated
from tests.simulation import engine_harness, harness
from tests.simulation import programs as concurrent
from tests.simulation.mixed_programs import as_agent
from tests.simulation.rewriting import rewritten, salted
from tests.simulation.test_mixed_programs import record

_ROOT = Path(__file__).resolve().parents[2]
_EVERYTHING = {
    "set": {"b", "a", "c", "ä", "ß"},
    "frozen": frozenset([(1, "x"), (2, "y")]),
    "when": dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45))),
    "naive": dt.datetime(1999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - no zone is the point
    "decimal": Decimal("1.10"),
    "id": UUID(int=7),
    "large": 2**80,
    "nan": float("nan"),
    "text": "İstanbul straße \ud800",
    "order": {"z": 1, "a": {"y": [1.0, 1, True, None]}},
}


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def values() -> str:
    """Encoded values, their keys, and that they come back."""
    types = Types()
    tree = encode(_EVERYTHING, types)
    assert repr(encode(decode(tree, types), types)) == repr(tree)
    return _digest(canonical(tree), request_key(bytes(32), "plain/1", tree))


def mixed() -> str:
    """Async programs: recorded, written down again, equal."""
    found: list[object] = []
    with harness.quiet():
        for seed in range(25):
            with salted():
                log, data = record(seed, sync=False)
            logs: list[list[Any]] = []
            assert rewritten(data, as_agent(seed, random.Random(0), logs, sync=False)) == data, seed
            assert logs == [log], seed
            found.append([_timeless(entry) for entry in Journal.parse(data).entries])
    return _digest(found)


def _timeless(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what every run has of its own: ids of the run and its payloads, the time, what was drawn."""
    own = (
        "at",
        "prev",
        "run",
        "clock",
        "code",
        "env",
        "input",
        "policy",
        "nonce",
        "req",
        "val",
        "err",
        "key",
        "src",
    )
    return {name: value for name, value in entry.items() if name not in own}


def programs() -> str:
    """Concurrent programs: what they saw when recorded."""
    found = []
    with harness.quiet():
        for seed in range(40):
            program = concurrent.generate(seed)
            log, data = engine_harness.run_recorded(program, random.Random(f"latencies {seed}"))
            assert engine_harness.run_replayed(program, data) == log, seed
            found.append(log)
    return _digest(found)


def traces() -> str:
    """Bytes that a writer makes, and what readers say of damage."""
    sample = Sample(tags={"user": "Ünder"}, conversation="c")
    data = sample.whole()
    verdicts = [(check(mutated(seed)).code, check(mutated(seed)).message) for seed in range(120)]
    return _digest(data, verdicts)


def store() -> str:
    """What a store lists and finds, in which order."""
    kept = MemoryStore()
    for number, tag in enumerate(["ann", "bob", "Ünder", "İ", "ı"]):
        kept.add(Sample(number, tags={"user": tag}).whole())
    questions = [
        Query(),
        Query(tag="ünder"),
        Query(text="FOUND"),
        Query(text="i̇"),
        Query(since=Sample(2).started),
    ]
    return _digest([[row.run for row in kept.runs(question)] for question in questions], kept.resolve("ann"))


def other_program() -> str:
    """The report of a replay that diverges."""
    _, data = record(4, sync=False)
    report = replay(Journal.parse(data), as_agent(5, random.Random(0), [], sync=False))
    assert report.verdict == "diverged"
    assert report.finding is not None
    return _digest(report.finding.cls, report.finding.message, report.counts)


FACTS: tuple[Callable[[], str], ...] = (values, mixed, programs, traces, store, other_program)


def main() -> None:
    print(json.dumps({fact.__name__: fact() for fact in FACTS}))


if __name__ == "__main__":
    main()
