"""Functions that the guard replaces have twins: in the modules of C that Python's own take them from, and where those
keep them under other names."""

from __future__ import annotations

import json
import subprocess
import sys

KEPT = {
    "asyncio.base_futures": "tells threads apart",
    "distutils.archive_util": "names the owners of what an archive holds; gone in Python 3.12",
    "pty": "copies between descriptors of a process, which is refused",
    "queue": "waits for threads in real time, where the run has none",
    "reprlib": "tells threads apart",
    "socketserver": "waits for connections",
    "subprocess": "waits for a process",
    "telnetlib": "waits for a connection",
    "threading": "waits for threads in real time, where the run has none",
    "trace": "measures the tracing itself",
    "locale": "what its own functions are made of, which are replaced",
    "uuid": "the same",
    "_android_support": "writes the log of another system",
}
"""Modules that keep a function from before on purpose, and for what (docs/guard.md)."""


def test_no_other_module_keeps_a_function_from_before() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.guard.twins"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert {name: held for name, held in found.items() if name not in KEPT} == {}
