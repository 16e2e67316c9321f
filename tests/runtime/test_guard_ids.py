"""Identifiers: made from the run's clock and entropy, well-formed, in order; packages of compiled code alike."""

from __future__ import annotations

import sys
import uuid
from types import ModuleType
from typing import Any

import pytest

from agentloom import agent
from agentloom.runtime import guard_ids
from agentloom.runtime.guard_install import install
from agentloom.store import MemoryStore


@pytest.fixture(autouse=True)
def in_place() -> None:
    install()


@agent(guard="strict")
def ids() -> list[str]:
    return [str(made) for made in (uuid.uuid1(), uuid.uuid1(node=5, clock_seq=9), uuid.uuid4(), uuid.uuid4())]


def test_identifiers_come_again_and_are_what_they_say() -> None:
    trace = ids.run(store=MemoryStore())
    assert trace.replay().verdict == "identical"
    made = [uuid.UUID(text) for text in trace.output]
    assert [one.version for one in made] == [1, 1, 4, 4]
    assert {one.variant for one in made} == {uuid.RFC_4122}
    assert made[0].time < made[1].time
    assert (made[1].node, made[1].clock_seq) == (5, 9)
    assert made[0].node >> 40 & 1, "a node that is no network card"
    assert abs(uuid.uuid1().time - made[0].time) < 60 * 10**7
    again = ids.run(store=MemoryStore(), seed=1).output
    assert not {*again, *ids.run(store=MemoryStore(), seed=1).output} & {*trace.output}
    assert set(again) & set(ids.run(store=MemoryStore(), seed=1).output) == set()


@agent(guard="strict")
def packaged() -> list[str]:
    import fastuuid
    import uuid_utils
    import uuid_utils.compat

    made: list[Any] = [uuid_utils.uuid1(), uuid_utils.uuid4(), uuid_utils.uuid6(), uuid_utils.uuid7()]
    made += [uuid_utils.compat.uuid7(), uuid_utils.compat.uuid4(), uuid_utils.uuid7(timestamp=1, nanos=2)]
    made += [fastuuid.uuid4(), fastuuid.uuid7(), *fastuuid.uuid4_bulk(2), *fastuuid.uuid7_as_strings_bulk(2)]
    return [str(one) for one in made]


def test_identifiers_of_compiled_packages_are_the_runs_own() -> None:
    pytest.importorskip("uuid_utils")
    pytest.importorskip("fastuuid")
    trace = packaged.run(store=MemoryStore())
    assert trace.replay().verdict == "identical"
    made = [uuid.UUID(text) for text in trace.output]
    assert [one.version for one in made] == [1, 4, 6, 7, 7, 4, 7, 4, 7, 4, 4, 7, 7]
    in_order = [one.int for one in made if one.version == 7 and one.int >> 80 > 10**6]
    assert in_order == sorted(in_order)
    assert made[6].int >> 80 == 1000
    import uuid_utils

    assert uuid_utils.uuid7() != uuid_utils.uuid7()


def test_what_a_module_keeps_between_identifiers_is_each_runs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper: Any = ModuleType("keeper")
    code = "last = None\ndef make():\n    global last\n    last = (last or 0) + 1\n    return last\n"
    exec(code, keeper.__dict__)
    monkeypatch.setitem(sys.modules, "keeper", keeper)
    monkeypatch.setitem(guard_ids._KEEPERS, "keeper", ("last", ("make",)))
    monkeypatch.setitem(guard_ids._PACKAGES, "keeper", guard_ids._kept("keeper"))
    assert [keeper.make(), keeper.make()] == [1, 2]
    assert guard_ids.install_loaded()

    @agent(guard="strict")
    def makes() -> list[int]:
        return [keeper.make(), keeper.make(), keeper.make()]

    for _ in range(2):
        trace = makes.run(store=MemoryStore())
        assert trace.output == [1, 2, 3]
        assert trace.replay().verdict == "identical"
    assert keeper.make() == 3
