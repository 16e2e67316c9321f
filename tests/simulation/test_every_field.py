"""Every value in every request counts: with any one of them changed, a replay diverges at that call."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentloom.format.journal import Journal
from agentloom.replay.replayer import replay
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.engine import Engine
from tests.simulation.mixed_programs import as_agent
from tests.simulation.test_mixed_programs import record

SEEDS = range(8)


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values that hold no others, and of empty containers."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = False
    for key, value in items:
        found = True
        yield from leaves(value, (*path, key))
    if not found and path:
        yield path


def changed(request: Mapping[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """A copy of the request with another value at ``path``."""
    made = copy.deepcopy(dict(request))
    inner: Any = made
    for key in path[:-1]:
        inner = inner[key]
    value = inner[path[-1]]
    inner[path[-1]] = value + 1 if type(value) is int else f"{value}!" if type(value) is str else "other"
    return made


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
def test_a_change_anywhere_in_a_request_is_noticed(sync: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Engine.begin
    traces = {seed: Journal.parse(record(seed, sync=sync)[1]) for seed in SEEDS}
    places: list[tuple[int, tuple[Any, ...]]] = []
    aim: list[tuple[int, tuple[Any, ...]]] = []

    def begin(self: Engine, spec: CallSpec, scope: Any, **more: Any) -> Any:
        number = self.calls
        if not aim:
            places.extend((number, path) for path in leaves(spec.request))
        elif aim[0][0] == number:
            spec.request = changed(spec.request, aim[0][1])
        return real(self, spec, scope, **more)

    monkeypatch.setattr(Engine, "begin", begin)
    tried = 0
    for seed, journal in traces.items():
        places.clear()
        aim.clear()
        assert replay(journal, as_agent(seed, random.Random(0), [], sync=sync)).verdict == "identical"
        for place in random.Random(seed).sample(places, min(25, len(places))):
            aim[:] = [place]
            report = replay(journal, as_agent(seed, random.Random(0), [], sync=sync))
            assert report.verdict == "diverged", f"seed {seed}: {place} was changed"
            tried += 1
    print(f"{tried} values, seeds {SEEDS}")
    assert tried > 100
