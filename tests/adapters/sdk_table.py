"""The table of seams: what a program sees bare, recording and replaying.

``python -m tests.adapters.sdk_table [openai ...]``; exit code 1 when a cell is not equal. docs/sdks/index.md keeps it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

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
    "langchain_cases",
    "llama_cases",
    "pydantic_cases",
    "agents_cases",
    "mcp_cases",
)
ELSEWHERE = {"llama_cases": "llama_index"}
"""Cases of packages that do not go together with the others here: `tests.environments.sdk_releases` runs them."""


def missing_here() -> list[str]:
    """Packages of ``ELSEWHERE`` that are not installed here."""
    return [package for package in ELSEWHERE.values() if find_spec(package) is None]


def seams(names: Sequence[str] = ()) -> list[Seam]:
    """All seams, in the order of the table; those of some SDKs alone, by the first word of a module's name, without
    importing the others."""
    absent = missing_here()
    chosen = [
        module
        for module in MODULES
        if (not names or module.partition("_")[0] in names) and ELSEWHERE.get(module) not in absent
    ]
    return [seam for name in chosen for seam in import_module(f"tests.adapters.contract.{name}").SEAMS]


def main(names: list[str]) -> int:
    sdks.watch()
    lines = list(table(seams(names)))
    print("\n".join(lines))
    for package in missing_here():
        print(
            f"not run, for {package} is not installed: python -m tests.environments.sdk_releases llama-index"
        )
    return 0 if "wrong: 0" in lines else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
