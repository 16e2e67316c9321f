"""Leaks: what is not deterministic is named with its value, its place and the setting that removes it; and case 11,
an address and a path in an error, which are no leak, because the error comes back as it was.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases.conftest import Scenario

# The forms that each may take are tried in tests/replay/test_leaks.py.
LEAKS = {
    "uuid": ("import uuid", "str(uuid.uuid4())", "a version 4 UUID", "uuid()"),
    "time": ("import time", "time.time()", "a time in seconds since 1970", "now()"),
    "clock": (
        "import time",
        "time.clock_gettime(time.CLOCK_REALTIME)",
        "a time in seconds since 1970",
        "now()",
    ),
    "datetime": ("import datetime", "datetime.datetime.now()", "a date and time", "now()"),
    "bytes": ("import posix", "posix.urandom(8).hex() + 'a0'", "random hexadecimal digits", "uuid()"),
}
"""Leaks of a run without a guard; under one these values are the run's own."""
PAST_THE_GUARD = {
    "address": ("class Thing: pass", "repr(Thing())", "a memory address", "__repr__"),
    "set order": ("class Thing: pass\nbig = [Thing() for _ in range(60)]", "[big.index(one) for one in set(big)]",
                  "the same members in another order", "sorted("),
    "float": ("import os, math\nodd = int(os.environ.get('ODD', '0'))",
              "math.nextafter(0.3, 1.0) if odd else 0.3", "a float in its last bits", "round()"),
    "C code": ("import _random", "_random.Random().random()", "a random number between 0 and 1", "random()"),
}  # fmt: skip


def _leaking(scenario: Scenario, prelude: str, expression: str, guard: str) -> str:
    path = scenario.write("")
    path.write_text(
        f"from agentloom import agent, tool\n{prelude}\n@tool(effect='read')\ndef create(title, value): return 1\n"
        f"@agent(guard='{guard}')\ndef main():\n    create('fixed', 1)\n    value = {expression}\n"
        "    return create('open', value)\n"
    )
    done = scenario.call("run", f"{path}:main")
    assert done.code == 0, done.all
    return f"agent.py:{len(path.read_text().splitlines())}"


@pytest.mark.parametrize("shape", [*LEAKS, *PAST_THE_GUARD])
def test_a_leak_is_named_with_its_place(scenario: Scenario, shape: str) -> None:
    prelude, expression, looks, fix = (LEAKS | PAST_THE_GUARD)[shape]
    place = _leaking(scenario, prelude, expression, "off" if shape in LEAKS else "strict")
    text, data = scenario.diverged(ODD="1")
    assert "leak  call 2 of 2  tool create" in text
    assert "Code and packages are as recorded: something is not deterministic." in text
    assert f"{place} in main()" in text
    assert looks in text
    assert fix in text
    assert "args.value" in text
    assert "all leaks   agentloom check agent.py:main" in text
    assert data["call"]["src"].startswith(f"{place} ")
    assert data["cause"]["kind"] == "leak"
    assert data["cause"]["leak_path"] == "args.value"
    assert data["cause"]["leak"]["looks_like"].startswith(looks)
    assert ("guard off" in text) is (shape in LEAKS)
    if shape == "C code":
        assert (
            data["cause"]["leak"]["likely"] == "C code that draws random numbers, which the guard cannot see"
        )
        assert "(a guess)" in text


@pytest.mark.parametrize("shape", LEAKS)
def test_under_the_guard_it_is_no_leak(scenario: Scenario, shape: str) -> None:
    prelude, expression, _, _ = LEAKS[shape]
    _leaking(scenario, prelude, expression, "strict")
    assert "IDENTICAL  2/2 calls" in scenario.identical().out


PROCESS = """
import sys
from agentloom import Trace, agent, tool
@tool(effect="read")
def search(topics): return len(topics)
@agent
def main():
    return search(f"topics: {set('abcdefgh')}") + search(list(set("abcdefgh")))
if __name__ == "__main__":
    if sys.argv[1] == "record":
        main.run(store=sys.argv[2])
    else:
        print(Trace.open(store=sys.argv[2]).replay(check=False, agent=main))
"""


def _python(scenario: Scenario, *args: str, seed: str) -> Any:
    import os
    import subprocess

    env = os.environ | {"PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, check=True, env=env, timeout=60
    )


def test_set_order_under_another_hash_seed(scenario: Scenario) -> None:
    path = scenario.write("")
    path.write_text(PROCESS)
    _python(scenario, str(path), "record", str(scenario.store), seed="1")
    again = _python(scenario, str(path), "replay", str(scenario.store), seed="2")
    assert "DIVERGED  leak  call 1 of 2  tool search" in again.stdout
    assert "the same members in another order" in again.stdout
    assert "sorted(" in again.stdout
    assert "agent.py:8 in main()" in again.stdout
    same = _python(scenario, str(path), "replay", str(scenario.store), seed="1")
    assert "IDENTICAL" in same.stdout


def test_the_command_line_gives_the_recorded_hash_seed_back(scenario: Scenario) -> None:
    path = scenario.write("")
    path.write_text(PROCESS.replace("if __name__", "if False and __name__"))
    for seed in ("1", "random"):
        scenario.call("run", f"{path}:main", env={"PYTHONHASHSEED": seed})
        scenario.identical(PYTHONHASHSEED="2")


ERROR = """
from agentloom import agent, tool
import os
class Session: pass
session = Session()
@tool
def fails(n): raise ValueError(f"no {n} in {session!r} at {os.getcwd()}/db.sqlite")
@tool
def opens(n): open(os.path.join(os.getcwd(), "absent.txt"))
@agent
def main():
    said = []
    for tool in (fails, opens):
        try:
            tool(1)
        except (ValueError, OSError) as error:
            said.append([type(error).__name__, str(error), error.args, getattr(error, "filename", None)])
    return said
"""


def test_an_error_with_an_address_and_a_path_replays_from_another_folder(
    scenario: Scenario, tmp_path: Path
) -> None:
    path = scenario.write("")
    path.write_text(ERROR)
    done = scenario.call("run", f"{path}:main")
    assert done.code == 0, done.all
    assert "object at 0x" in done.out
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = scenario.replay(cwd=elsewhere, env={"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    assert again.code == 0, again.all
    assert "IDENTICAL  2/2 calls" in again.out


OWN_ERROR = """
from pathlib import Path
import os
for way in (lambda: open(os.path.abspath("absent.txt")), lambda: Path("absent.txt").absolute().read_text(),
            lambda: os.listdir(os.path.join(os.getcwd(), "absent")), lambda: os.stat(Path.cwd() / "absent")):
    try:
        way()
    except OSError as error:
        print(ask(user(f"{error} {error.filename}")))
"""


def test_an_error_of_the_agents_own_code_names_the_recorded_folder(
    scenario: Scenario, tmp_path: Path
) -> None:
    """A neighbour: the path is in the error because the code itself looked where it is."""
    done = scenario.record(OWN_ERROR, lambda seen: seen.body["messages"][-1]["content"])
    assert done.out.count(f"'{scenario.folder}/absent") == 4, done.all
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = scenario.replay(cwd=elsewhere)
    assert again.code == 0, again.all
    assert "IDENTICAL  4/4 calls" in again.out


CACHED = """
import functools
from agentloom import Trace, agent, tool
from agentloom.store import MemoryStore
@tool(effect="read")
def double(n): return n * 2
@functools.lru_cache
@tool(effect="read")
def lookup(n): return n * 2
@functools.cache
def twice(n): return double(n)
@functools.cache
def pure(n): return n
@agent
def main(): return lookup(1) + lookup(2) + lookup(1) + twice(1) + pure(1)
if __name__ == "__main__":
    store = MemoryStore()
    cold = main.run(store=store)
    print(len(cold.calls))
    print(main.run(store=store).output == cold.output)
    print(cold.replay(check=False))
    lookup.cache_clear()
    twice.cache_clear()
    print(cold.replay(check=False))
"""


def test_a_cache_around_a_tool_cold_and_warm(scenario: Scenario) -> None:
    """A cold process makes the same record each time; a warm one warns, and its replay says why it differs."""
    path = scenario.write("")
    path.write_text(CACHED)
    done = _python(scenario, str(path), seed="0")
    assert done.stdout.startswith("3\nTrue\n")
    for name, place, kept in (("lookup", "agent.py:7", "2 results"), ("twice", "agent.py:10", "1 result")):
        assert (
            f"RuntimeWarning: {name} ({place}) has a cache that holds {kept} from before this run"
            in done.stderr
        )
        assert f"{name} ({place}) has a cache" in done.stdout
    assert "pure" not in done.stderr.replace("pure(1)", "")
    assert "main.run(store=store).output" in done.stderr
    assert done.stdout.count("DIVERGED") == 1
    assert done.stdout.count("IDENTICAL  3/3 calls") == 1
    scenario.call("run", f"{path}:main")
    scenario.identical()
