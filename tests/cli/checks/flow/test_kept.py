"""Attributes that outlive a run, generators of a module, and objects that live on."""

from __future__ import annotations

import pytest

from tests.cli.checks.flow.agents import findings, names, of_script

STATE = """
import threading, types, random, functools, itertools
from random import Random
LOCAL = threading.local()
SPACE = types.SimpleNamespace(n=0)
class Finder:
    known = {}
    last = ""
    def find(self, query):
        return query
FINDER = Finder()
def helper(query): return query
helper.known = {}
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("LOCAL.n = given; return LOCAL.n", ["global-state"]),
        ("SPACE.n += 1; return SPACE.n", ["counter"]),
        ("FINDER.last = given; return FINDER.last", ["global-state"]),
        ("Finder.last = given; return FINDER.last", ["global-state"]),
        ("FINDER.known.setdefault(given, 1); return FINDER.known", ["global-state"]),
        ("helper.known[given] = search(given); return helper.known.get(given)", ["cache"]),
        ("return Finder.known.setdefault(given, search(given))", ["cache"]),
        ("LOCAL.n = given", []),
        ("Finder.known.clear()", []),
        ("LOCAL = threading.local(); LOCAL.n = given; return LOCAL.n", []),
        ("finder = Finder(); finder.last = given; return finder.last", []),
        ("given.last = 1; return given.last", []),
        ("return Finder().find(given)", []),
    ],
)
def test_attributes_of_what_the_module_has(body: str, found: list[str]) -> None:
    assert names(body.replace("; ", "\n"), before=STATE) == found


def test_in_a_script_they_begin_anew() -> None:
    assert of_script(STATE + "LOCAL.n = 1\nFinder.last = 'x'\nprint(LOCAL.n, Finder.last)\n") == []


@pytest.mark.parametrize(
    ("made", "body", "found"),
    [
        ("random.Random()", "return DICE.random()", ["import-time"]),
        ("Random()", "return DICE.choice(given)", ["import-time"]),
        ("random.Random(7)", "return DICE.random()", ["counter"]),
        ("random.Random(7)", "DICE.seed(given)\nreturn DICE.random()", []),
        ("random.Random(7)", "DICE = random.Random(7)\nreturn DICE.random()", []),
        ("random.SystemRandom()", "return DICE.random()", []),
    ],
)
def test_generators(made: str, body: str, found: list[str]) -> None:
    assert names(body, before=f"import random\nfrom random import Random\nDICE = {made}") == found


def test_generators_of_numpy() -> None:
    head = "import numpy as np\nDICE = np.random.default_rng({})"
    assert names("return DICE.integers(9)", before=head.format("")) == ["import-time"]
    assert names("return DICE.integers(9)", before=head.format("7")) == ["counter"]
    assert names("return np.random.default_rng().integers(9)", before=head.format("7")) == []


def test_a_generator_of_another_module() -> None:
    found = findings(
        "from agentloom import agent\nfrom dice import DICE\n@agent\ndef run(given): return DICE.random()\n",
        dice="import random\nDICE = random.Random()\n",
    )
    assert [(one.file, one.line, one.check) for one in found] == [("dice.py", 2, "import-time")]


RATES = """
import functools
class Rates:
    @functools.cached_property
    def today(self): return search("rates")
"""


@pytest.mark.parametrize(
    ("more", "body", "found"),
    [
        ("RATES = Rates()", "return RATES.today", ["cache"]),
        ("TABLE = {'eu': Rates()}", "return TABLE['eu'].today", ["cache"]),
        ("class Bank:\n    rates = Rates()", "return Bank.rates.today", ["cache"]),
        ("def ask(rates=Rates()): return rates.today", "return ask()", ["cache"]),
        ("", "return Rates().today", []),
        ("def ask(): return Rates().today", "return ask()", []),
        ("if __name__ == '__main__':\n    Rates()", "return Rates().today", []),
    ],
)
def test_a_property_that_is_kept_by_an_object_that_lives_on(more: str, body: str, found: list[str]) -> None:
    assert names(body, before=RATES + more) == found


def test_values_of_classes_from_import() -> None:
    head = """
    import uuid, time
    class Note:
        id = uuid.uuid4()
        at: float = time.time()
        def show(self): return self.at
    """
    assert names("return str(Note.id)", before=head) == ["import-time"]
    assert names("return Note().show()", before=head) == ["import-time"]
    assert names("return search('x')", before=head) == []
