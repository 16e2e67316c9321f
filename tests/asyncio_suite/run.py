"""Run CPython's own asyncio tests on the inner loop, for every interpreter found, and print a table.

    python tests/asyncio_suite/run.py [PYTHON ...]

Without arguments: this interpreter and the 3.11, 3.12 and 3.13 of pyenv. Exit code 1 when a test fails, when more than
a tenth of the chosen tests is skipped, or when an interpreter cannot run them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_WORKER = "tests.asyncio_suite.worker"
_VERSIONS = ("3.11", "3.12", "3.13")
_MOST_SKIPPED = 0.10
_TIMEOUT_S = 600  # 15 on a machine that does nothing else


def interpreters() -> dict[str, str]:
    """Version ("3.12") -> interpreter, for this one and those of pyenv."""
    found: dict[str, str] = {}
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in _VERSIONS:
        for candidate in sorted(versions.glob(f"{version}.*")):
            found[version] = str(candidate / "bin" / "python")
    found[f"{sys.version_info.major}.{sys.version_info.minor}"] = sys.executable
    return dict(sorted(found.items()))


def run(python: str) -> dict[str, Any]:
    """The worker's results; its ``failed`` names the worker itself when it broke."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        done = subprocess.run(
            [python, "-m", _WORKER],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env=env,
            cwd=_ROOT,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return broken(python, f"no result within {late.timeout} s")
    if done.returncode != 0 or not done.stdout.startswith("{"):
        return broken(python, done.stderr[-4000:])
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def broken(python: str, text: str) -> dict[str, Any]:
    """Results of an interpreter that gave none."""
    failed = [{"test": "worker", "text": text}]
    return {"python": python, "ran": 0, "failed": failed, "skipped": [], "not_here": [], "seconds": 0.0}


def skipped_share(results: dict[str, Any]) -> float:
    """Skipped by name here, or by the test itself, of all that were chosen."""
    skipped = len(results["skipped"]) + len(results["not_here"])
    return skipped / max(1, skipped + int(results["ran"]))


def problems(results: dict[str, Any]) -> list[str]:
    """Why these results are not good enough; empty when they are."""
    found = [f"{one['test']}: {one['text'].strip()}" for one in results["failed"]]
    share = skipped_share(results)
    if share > _MOST_SKIPPED:
        found.append(f"{share:.1%} of the chosen tests are skipped; at most {_MOST_SKIPPED:.0%} may be")
    if not results["ran"]:
        found.append("no test ran")
    return found


def show(results: dict[str, Any]) -> None:
    """One row of the table."""
    passed = results["ran"] - len(results["failed"])
    row = (
        results["python"],
        passed,
        len(results["failed"]),
        len(results["skipped"]),
        len(results["not_here"]),
    )
    print(
        "{:<10} {:>7} {:>7} {:>8} {:>9} {:>8.1%} {:>7.1f} s".format(
            *row, skipped_share(results), results["seconds"]
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("python", nargs="*", help="interpreters to try (default: all that are found)")
    chosen = parser.parse_args().python or list(interpreters().values())
    print(
        "{:<10} {:>7} {:>7} {:>8} {:>9} {:>8} {:>9}".format(
            "python", "passed", "failed", "skipped", "not here", "share", "took"
        )
    )
    bad: list[str] = []
    reasons: dict[tuple[str, str], list[str]] = {}
    for python in chosen:
        results = run(python)
        show(results)
        bad += [f"{results['python']}: {problem}" for problem in problems(results)]
        for kind in ("skipped", "not_here"):
            for one in results[kind]:
                reasons.setdefault((one["test"], one["why"]), []).append(results["python"])
    print("\nskipped, and why:")
    for (test, why), pythons in sorted(reasons.items()):
        print(f"  {test} ({', '.join(pythons)}): {why}")
    for problem in bad:
        print(f"\nPROBLEM {problem}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
