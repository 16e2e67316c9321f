"""Run the own suites of packages bare and under recording, and compare the verdict of each test.

    python -m tests.suites.run [--all] [--how block|coroutine] [--differing] [PACKAGE ...]

Without ``--all``: the part of each suite that `SUITES` names. Exit code 1 when a verdict differs that `KNOWN` does not
explain, 2 when a suite cannot be had here. The suites run unchanged: from their source distributions, against a local
server where they want one (`sdk_server`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.suites.known import known
from tests.suites.packages import SUITES, Suite
from tests.suites.sources import NotHere, cache, installed, overlay, source

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(__file__).parent / "plugin"
HOWS = ("block", "coroutine")

_HEADS = (
    "package", "version", "recorded as", "test functions", "cases", "passed bare", "passed recorded", "calls recorded",
    "differing", "of these not explained",
)  # fmt: skip

Rows = dict[str, dict[str, Any]]


@dataclass
class Compared:
    """One suite, bare and recorded one way."""

    package: str
    version: str
    how: str
    bare: Rows = field(repr=False)
    recorded: Rows = field(repr=False)

    @property
    def functions(self) -> int:
        """Test functions of which at least one case passed bare: a parametrised one counts once."""
        passed = (name for name, row in self.bare.items() if row["verdict"] == "passed")
        return len({re.sub(r"\[.*", "", name) for name in passed})

    @property
    def differing(self) -> list[tuple[str, str, str, str]]:
        """Test, verdict bare, verdict recorded, why."""
        none = {"verdict": "not run", "why": ""}
        out: list[tuple[str, str, str, str]] = []
        for name in sorted(self.bare.keys() | self.recorded.keys()):
            before, now = self.bare.get(name, none), self.recorded.get(name, none)
            if before["verdict"] != now["verdict"]:
                out.append((name, before["verdict"], now["verdict"], now["why"] or before["why"]))
        return out

    @property
    def unexplained(self) -> list[tuple[str, str, str, str]]:
        """Of those, what `KNOWN` has no reason for."""
        return [row for row in self.differing if known(self.package, row[0], self.how) is None]

    def count(self, rows: Rows, verdict: str) -> int:
        return sum(row["verdict"] == verdict for row in rows.values())

    @property
    def calls(self) -> int:
        """Calls in the traces of the recorded tests."""
        return sum(int(row.get("calls", 0)) for row in self.recorded.values())


@contextmanager
def _serving(suite: Suite) -> Iterator[dict[str, str]]:
    """The suite's own server, and the variables that name it."""
    if suite.server is None:
        yield {}
        return
    command = [sys.executable, "-m", "tests.suites.sdk_server", suite.server]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield {"TEST_API_BASE_URL": server.stdout.readline().strip()}
        finally:
            server.stdin.close()
            server.wait(30)


def once(suite: Suite, how: str, targets: Sequence[str], *, download: bool = True) -> Rows:
    """The verdicts of one run of pytest over ``targets`` of a suite. `NotHere`, also when pytest itself broke."""
    version = installed(suite.package)
    if version is None:
        raise NotHere(f"{suite.package} is not installed")
    folder = source(suite.package, version, download=download)
    extra = overlay(suite.package, suite.needs, download=download)
    results = cache() / f"results-{suite.package}-{how}-{os.getpid()}.jsonl"
    results.unlink(missing_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTLOOM", "PYTEST"))}
    env |= {
        "AGENTLOOM_SUITE_HOW": how,
        "AGENTLOOM_SUITE_RESULTS": str(results),
        "PYTHONPATH": os.pathsep.join([str(extra), str(PLUGIN)]),
        "PYTHONHASHSEED": "0",
    }
    options = ["-p", "agentloom_suite", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-q"]
    command = [sys.executable, "-m", "pytest", *options, *suite.options, "--continue-on-collection-errors"]
    with _serving(suite) as more:
        done = subprocess.run(
            [*command, *targets], cwd=folder, env=env | more, capture_output=True, text=True, check=False
        )
    if not results.exists():
        raise NotHere(f"the suite of {suite.package} broke: {(done.stdout + done.stderr)[-2000:]}")
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    results.unlink()
    return {row["test"]: row for row in rows}


def compare(
    suite: Suite, hows: Sequence[str], targets: Sequence[str], *, download: bool = True
) -> Iterator[Compared]:
    """Bare once, and recorded each way."""
    bare = once(suite, "bare", targets, download=download)
    for how in hows:
        recorded = once(suite, how, targets, download=download)
        yield Compared(suite.package, str(installed(suite.package)), how, bare, recorded)


def table(rows: Sequence[Compared]) -> str:
    """Markdown."""
    lines = [
        "| " + " | ".join(_HEADS) + " |",
        "| " + " | ".join("---" for _ in _HEADS) + " |",
    ]
    for one in rows:
        cells = [
            one.package, one.version, one.how, one.functions, len(one.bare), one.count(one.bare, "passed"),
            one.count(one.recorded, "passed"), one.calls, len(one.differing), len(one.unexplained),
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(SUITES))
    parser.add_argument("--all", action="store_true", help="every file of the suite")
    parser.add_argument("--how", choices=HOWS, action="append", help="default: both")
    parser.add_argument(
        "--differing", action="store_true", help="also those with a known reason, with the error"
    )
    parser.add_argument("--only", action="append", help="these files or tests instead")
    given = parser.parse_args(arguments)
    rows: list[Compared] = []
    missing = 0
    for name in given.packages or list(SUITES):
        suite = SUITES[name]
        targets = given.only or (["tests"] if given.all else suite.part)
        try:
            for one in compare(suite, given.how or HOWS, targets):
                rows.append(one)
                _tell(one, every=given.differing)
        except NotHere as reason:
            missing += 1
            print(f"{name}: not here: {reason}", flush=True)
    print("\n" + table(rows))
    return 1 if any(one.unexplained for one in rows) else 2 if missing else 0


def _tell(one: Compared, *, every: bool) -> None:
    for test, before, now, why in one.differing if every else one.unexplained:
        errors = [line for line in why.splitlines() if line.startswith("E ")] or [why[-200:]]
        reason = known(one.package, test, one.how)
        print(f"{one.package} {one.how} {test}: {before}, recorded {now}: {reason or errors[0]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
