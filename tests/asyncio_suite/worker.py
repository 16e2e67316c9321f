"""Run CPython's asyncio tests on the inner loop, in this interpreter; print one JSON object of results.

    python -m tests.asyncio_suite.worker [PART_OF_A_TEST_NAME]

Needs the interpreter's own ``test`` package, and nothing else from outside the standard library: the packages above
the inner loop are not imported.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[2] / "src" / "agentloom"


def bare() -> None:
    """Let ``agentloom.runtime.loop`` be imported without running the ``__init__`` modules above it."""
    for name, path in (("agentloom", _SOURCE), ("agentloom.runtime", _SOURCE / "runtime")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package


if __name__ == "__main__":
    bare()
    from tests.asyncio_suite import cases

    cases.main(sys.argv[1] if len(sys.argv) > 1 else None)
