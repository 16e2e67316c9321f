"""Run in the copy, ``python -m tests.mutation.trying QUICK META ... -- TEST ...``: try mutants that have no result yet.

Tests are collected once. Every mutant gets a process forked from there, which runs the tests that call the changed
function, quick ones first until together they take QUICK seconds, and ends with the first that fails: far less work
than one run of pytest for each.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import itertools
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import given, strategies

_T = TypeVar("_T")

KILLED, SURVIVED, UNTESTED, SLOW = 1, 0, 33, 36
"""Exit codes of mutmut."""
LOOKED = Path("../looked.json")
"""What is known of tests: hash of the code and of their file, seconds, and the functions that are called."""
MEMORY = 6 * 2**30
OPTIONS = "-q -p no:cacheprovider -W ignore --tb=native --assert=plain --basetemp=../temp".split()


class Trying:
    """A plugin of pytest that puts the trying of mutants in the place of the run of tests."""

    def __init__(self, metas: list[Path], quick: float) -> None:
        self.metas = metas
        self.quick = quick
        self.seconds: dict[int, float] = {}
        self.calls: dict[str, set[int]] = {}
        self.killers: dict[str, list[int]] = defaultdict(list)
        self.failed = ""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Look which tests call what, then try the mutants of each file."""
        if session.testsfailed:
            raise session.Interrupted("not every test could be collected")
        session.config.pluginmanager.unregister(name="terminalreporter")
        _warm()
        gc.collect()
        gc.freeze()  # so that the processes share what is there already
        looked = _apart(lambda: self._look(session))
        if looked is None:
            raise session.Interrupted("tests could not be looked at")
        print(f"looked at {len(session.items)} tests: {sum(looked[0].values()):.0f} s", flush=True)
        self.seconds, self.calls = looked
        for meta in self.metas:
            data = json.loads(meta.read_text(encoding="utf-8"))
            codes = data["exit_code_by_key"]
            begun = time.monotonic()
            wanted = [name for name, code in codes.items() if code is None]
            for count, name in enumerate(wanted, 1):
                codes[name] = self._try(session, name)
                if count % 50 == 0 or count == len(wanted):
                    meta.write_text(json.dumps(data, indent=4), encoding="utf-8")
            print(f"{meta.stem}: {len(wanted)} tried in {time.monotonic() - begun:.0f} s", flush=True)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed."""
        if report.failed:
            self.failed = f"{report.nodeid} ({report.when}): {report.longreprtext[-2000:]}"

    def _run(self, session: pytest.Session, places: list[int]) -> list[int]:
        """Run tests of the session, given by their places, until one fails: that one, or none."""
        for place, after in zip(places, [*places[1:], None], strict=True):
            item, following = session.items[place], None if after is None else session.items[after]
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return [place]
        return []

    def _look(self, session: pytest.Session) -> tuple[dict[int, float], dict[str, set[int]]]:
        """How long each test takes, in seconds, and the tests that call each changed function. Tests are not looked at
        again while their file and the code that is changed are as they were. A test that fails calls nothing."""
        trampoline = _trampoline()
        known: dict[str, Any] = json.loads(LOOKED.read_text("utf-8")) if LOOKED.is_file() else {}
        found: dict[str, Any] = {}
        code = _digest(*sorted({path for meta in self.metas for path in meta.parent.glob("*.py")}))
        trampoline.get_mutant_under_test = lambda: "stats"
        trampoline.MutmutCallStack = _NoStack
        for place, item in enumerate(session.items):
            of = code + _digest(item.path)
            found[item.nodeid] = known.get(item.nodeid)
            if found[item.nodeid] is None or found[item.nodeid][0] != of:
                called: set[str] = set()
                trampoline.record_trampoline_hit = partial(_called, called)
                begun = time.process_time()
                if self._run(session, [place]):
                    print(f"left out, it fails although nothing is changed: {self.failed}", flush=True)
                    self.failed, called = "", set[str]()
                found[item.nodeid] = [of, time.process_time() - begun, sorted(called)]
        LOOKED.write_text(json.dumps(known | found), encoding="utf-8")
        seconds: dict[int, float] = {}
        calls: dict[str, set[int]] = defaultdict(set)
        for place, item in enumerate(session.items):
            _, seconds[place], names = found[item.nodeid]
            for name in names:
                calls[name].add(place)
        return seconds, dict(calls)

    def _try(self, session: pytest.Session, name: str) -> int:
        """The exit code for one mutant. Tests that found others of its function come first."""
        function = name.rpartition("__mutmut_")[0]
        known = self.killers[function]
        module = name.split(".")[2]

        def cost(place: int) -> float:
            """Seconds, less for tests that found others of the function, and for those of the module's own file."""
            own = f"/test_{module}" in session.items[place].nodeid
            return self.seconds[place] / (50 if own else 10 if place in known else 1)

        calling = sorted(self.calls.get(function, ()), key=cost)
        sums = itertools.accumulate(self.seconds[place] for place in calling)
        places = [place for place, spent in zip(calling, sums, strict=True) if spent <= self.quick]
        if not places:
            return UNTESTED
        limit = int(3 + 5 * sum(self.seconds[place] for place in places))
        killers = _apart(lambda: self._changed(session, name, places, limit))
        if killers is None:
            return SLOW
        known += [killer for killer in killers if killer not in known]
        return KILLED if killers else SURVIVED

    def _changed(self, session: pytest.Session, name: str, places: list[int], limit: int) -> list[int]:
        """In a process of its own, which ends after ``limit`` seconds: the test that finds the change, or none."""
        trampoline = _trampoline()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(4 * limit)
        os.environ["MUTANT_UNDER_TEST"] = name
        trampoline.get_mutant_under_test = lambda: name
        try:
            return self._run(session, places)
        except BaseException:  # noqa: BLE001 - the code under test ended the run: noticed
            return places[:1]


def _apart(work: Callable[[], _T]) -> _T | None:
    """What ``work`` gives in a forked process; None if it did not end by itself."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setpgid(0, 0)
                pickle.dump(work(), answer)
                answer.flush()
                code = 0
            except BaseException as problem:  # noqa: BLE001 - the process ends here
                sys.stderr.write(f"{problem!r}\n")
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status == 0:
            answer.seek(0)
            return cast(_T, pickle.load(answer))
    return None


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _trampoline() -> Any:
    """The module of mutmut through which every changed function is called."""
    return importlib.import_module("mutmut.mutation.trampoline")


class _NoStack:
    """In place of what mutmut notes about callers, which takes longer than the tests."""

    @staticmethod
    def get() -> tuple[str, int]:
        return "", 0

    @staticmethod
    def set(value: object) -> None: ...
    @staticmethod
    def reset(token: object) -> None: ...


def _called(called: set[str], name: str, caller: object = None) -> None:
    called.add(name)


def _warm() -> None:
    """Load what the first property loads, once for all processes."""

    @given(strategies.text(), strategies.floats(), strategies.datetimes())
    def draw(text: str, number: float, when: object) -> None:
        """Nothing."""

    draw()


if __name__ == "__main__":
    split = sys.argv.index("--")
    trying = Trying([Path(name) for name in sys.argv[2:split]], float(sys.argv[1]))
    sys.exit(
        pytest.main(
            [*OPTIONS, "-o", "addopts=--import-mode=importlib", "-m", "not slow", *sys.argv[split + 1 :]],
            plugins=[trying],
        )
    )
