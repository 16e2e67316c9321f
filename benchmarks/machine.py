"""The machine in words: what a reader needs to place the numbers, and no name of it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["described"]


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return models[0] if models else platform.machine()


def described() -> str:
    """Cores, memory, processor model, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    has = f", {memory:.0f} GiB of memory" if memory else ""
    return f"{os.cpu_count()} cores, {_processor()}{has}, {platform.system()}, Python {platform.python_version()}"
