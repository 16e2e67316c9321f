"""Import the inner loop alone: the packages above it need third-party code that a bare interpreter does not have."""

from __future__ import annotations

import sys
import types
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[2] / "src" / "agentloom"


def install() -> None:
    """Let ``agentloom.runtime.loop`` be imported without running the packages' ``__init__`` modules."""
    for name, path in (("agentloom", _SOURCE), ("agentloom.runtime", _SOURCE / "runtime")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
