"""docs/guard.md lists what the guard does about every known leak, for each Python version. Here it is tried."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.leaks import PROBES

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")
HERE = "{}.{}".format(*sys.version_info)

MAY_BE_OPEN = {
    "_random.Random()": "the C type underneath random.Random: seeding it raises no event, and it has no name to wrap",
    "posix.environ": "a plain mapping in C",
    "hash() of a str": "by the hash seed of the process, which `agentloom replay` pins",
    "iteration over a set": "as hash()",
    "hash(), repr() of a plain object": "an address of the process",
}
"""What the page may call open, each with the reason."""


def table() -> dict[str, dict[str, str]]:
    """The table of the page: version -> leak -> word."""
    found: dict[str, dict[str, str]] = {version: {} for version in VERSIONS}
    for line in (ROOT / "docs" / "guard.md").read_text(encoding="utf-8").splitlines():
        row = re.fullmatch(r"\| `?(.+?)`? \| (\w+) \| (\w+) \| (\w+) \| .*\|", line)
        if row is not None:
            for version, word in zip(VERSIONS, row.groups()[1:], strict=True):
                found[version][row.group(1)] = word
    return found


def tried(folder: Path, python: str = sys.executable) -> dict[str, str]:
    """What happens, by a recording and a replay in two processes that see two worlds."""
    worlds = {"then": "1\n", "now": "23456\n"}
    for world, text in worlds.items():
        (folder / world).mkdir()
        (folder / world / "world.txt").write_text(text)
    (folder / "then" / "only_when_recorded").touch()
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(folder)}
    then = {**base, "PROBE": "1", "PROBE_2": "2", "PYTHONHASHSEED": "1", "TZ": "Europe/Berlin", "LC_ALL": "C"}
    now = {**base, "PROBE": "one", "PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    command = [python, "-m", "tests.guard.leaks"]
    subprocess.run([*command, "record", str(folder)], env=then, input=b"a line\n", check=True, timeout=120)
    reading, writing = os.pipe()  # from which nothing comes
    try:
        done = subprocess.run(
            [*command, "replay", str(folder)],
            env=now,
            stdin=reading,
            stdout=subprocess.PIPE,
            check=True,
            timeout=120,
        )
    finally:
        os.close(reading)
        os.close(writing)
    return dict(json.loads(done.stdout))


def test_every_known_leak_has_a_row() -> None:
    for version, rows in table().items():
        assert set(rows) == set(PROBES), version
        assert set(rows.values()) == {"virtual", "refused", "open"}


@pytest.mark.skipif(HERE not in VERSIONS, reason="the page is about other versions")
def test_the_guard_does_what_the_page_says(tmp_path: Path) -> None:
    assert tried(tmp_path) == table()[HERE]


def test_what_the_page_calls_open_has_a_reason() -> None:
    for version, rows in table().items():
        still = {name for name, word in rows.items() if word == "open"}
        assert still - set(MAY_BE_OPEN) == set(), version
