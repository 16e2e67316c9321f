"""Names from before the guard: found by identity, wherever a program keeps them."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from agentloom.runtime.guard_names import Names, stand_in

PAIR: dict[str, Any] = {}
"""Not globals: the modules that are looked through include this one."""


HEAD = """
import dataclasses
name = original
"""

OWN = """
def defaults(one=original, *, two=original):
    return one(), two()

def closed():
    kept = original
    def inner():
        return kept()
    return inner

cell = closed()

class Keeps:
    clock = staticmethod(original)
    def method(self, one=original):
        return one()
    @classmethod
    def of_class(cls, one=original):
        return one()
    @property
    def held(self):
        return self.method()

@dataclasses.dataclass
class Data:
    at: str = dataclasses.field(default_factory=original)
    plain: int = 3
"""


@pytest.fixture(autouse=True)
def pair() -> None:
    def original() -> str:
        return "original"

    def replaced() -> str:
        return "replaced"

    PAIR.update(original=original, replaced=replaced)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    def make(name: str, file: str) -> Any:
        made: Any = ModuleType(name)
        made.__file__ = file
        made.original = PAIR["original"]
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(HEAD + OWN, file, "exec"), made.__dict__)
        return made

    return make


def swept() -> Names:
    names = Names()
    names.note(PAIR["original"], PAIR["replaced"])
    names.sweep()
    return names


def test_own_modules_are_looked_through_to_the_ground(module: Callable[[str, str], Any]) -> None:
    own = module("own_program", "/somewhere/own_program.py")
    swept()
    assert own.name() == own.original() == "replaced"
    assert own.defaults() == ("replaced", "replaced")
    assert own.cell() == "replaced"
    keeps = own.Keeps()
    assert [keeps.clock(), keeps.method(), own.Keeps.of_class(), keeps.held] == ["replaced"] * 4
    assert own.Data() == own.Data("replaced", 3)
    assert own.Data.__dataclass_fields__["at"].default_factory() == "replaced"


def test_what_stands_in_for_a_function_of_an_own_module_goes_on_holding_it(
    module: Callable[[str, str], Any],
) -> None:
    """Else it would call itself without end."""
    own = module("own_ids", "/somewhere/own_ids.py")
    real = own.original = own.defaults

    def stands_in() -> object:
        return "kept", real()

    stands_in.__module__ = "own_ids"  # as a stand-in has it
    names = Names()
    names.put(own, "defaults", stands_in, real)
    names.sweep()
    assert own.original is own.defaults is stands_in
    assert own.defaults() == ("kept", ("original", "original"))


def test_of_a_library_the_globals_are_looked_through(module: Callable[[str, str], Any]) -> None:
    library = module("a_library", f"{sys.prefix}/lib/python3/site-packages/a_library.py")
    library.__file__ = dt.__file__.replace("datetime.py", "site-packages/a_library.py")
    swept()
    assert library.name() == "replaced"
    assert library.defaults() == ("original", "original")


def test_agentloom_itself_is_left_alone(module: Callable[[str, str], Any]) -> None:
    inside = module("agentloom.something", "/somewhere/agentloom/something.py")
    swept()
    assert inside.name() == "original"


def test_a_module_that_cannot_be_looked_at_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(f"asked for {name}")

    monkeypatch.setitem(sys.modules, "lazy_module", Lazy("lazy_module"))
    monkeypatch.setitem(sys.modules, "no_module", None)
    swept()


def test_a_bound_method_of_a_built_in_type_is_bound_anew() -> None:
    names = Names()
    names.method(dt.datetime, "now")
    assert names.replacement(dt.datetime.fromtimestamp) is not None
    assert names.replacement(5) == 5
    assert names.replacement(PAIR["original"]) is PAIR["original"]


def test_a_stand_in_passes_for_what_it_stands_for() -> None:
    made = stand_in(time, time.get_clock_info, lambda _, name: name.upper())
    assert made("x") == "X"
    assert made.__name__ == "get_clock_info"

    class Holds:
        kept = made

    assert Holds().kept("y") == "Y"
