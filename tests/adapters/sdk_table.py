"""The table of seams: what a program sees bare, recording and replaying. ``python -m tests.adapters.sdk_table [NAME]``;
exit code 1 when a cell is not equal. It is kept in docs/sdks/index.md."""

from __future__ import annotations

import sys
from importlib import import_module

from agentloom.adapters import sdks
from agentloom.testing.sdk_contract import Seam, table

MODULES = (
    "openai_cases",
    "anthropic_cases",
    "google_cases",
    "httpx_cases",
    "aiohttp_cases",
    "urllib_cases",
    "litellm_cases",
)


def seams() -> list[Seam]:
    """All seams, in the order of the table."""
    return [seam for name in MODULES for seam in import_module(f"tests.adapters.contract.{name}").SEAMS]


def main(names: list[str]) -> int:
    sdks.watch()
    lines = list(table([seam for seam in seams() if not names or any(name in seam.name for name in names)]))
    print("\n".join(lines))
    return 0 if "wrong: 0" in lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
