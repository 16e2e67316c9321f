"""The table of seams: what a program sees bare, recording and replaying.

``python -m tests.adapters.sdk_table [openai ...]``; exit code 1 when a cell is not equal. docs/sdks/index.md keeps it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
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


def seams(names: Sequence[str] = ()) -> list[Seam]:
    """All seams, in the order of the table; those of some SDKs alone, by the first word of a module's name, without
    importing the others."""
    chosen = [module for module in MODULES if not names or module.partition("_")[0] in names]
    return [seam for name in chosen for seam in import_module(f"tests.adapters.contract.{name}").SEAMS]


def main(names: list[str]) -> int:
    sdks.watch()
    lines = list(table(seams(names)))
    print("\n".join(lines))
    return 0 if "wrong: 0" in lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
