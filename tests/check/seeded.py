"""The seeded leaks: example agents with one leak each, marked in its line, and their clean twins.

``# leak: NAME`` marks the line of a static finding, ``# differs: FACET`` that of a call whose request differs in
another world and that only a double run finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

AGENTS = Path(__file__).parent / "agents"
_LEAK = re.compile(r"# leak: ([\w-]+)")
_DIFFERS = re.compile(r"# differs: ([\w ]+)")
_AGENT = re.compile(r"@agent\ndef (\w+)")
DOUBLE = {
    "set_joined": "hash seed",
    "set_of_calls": "hash seed",
    "hash_choice": "hash seed",
    "time_zone": "time zone",
    "locale_number": "locale",
    "working_folder": "working folder",
    "early_variable": "environment",
    "arguments": "every replay",
    "numpy_random": "every replay",
}
"""Agents whose leak a double run finds as well as the source, and what it says is the reason."""


@dataclass(frozen=True)
class Seed:
    """One agent. ``rule``: the static finding's name, None where only a double run finds it; ``line``: the marked."""

    name: str
    line: int
    rule: str | None
    facet: str | None

    @property
    def leak(self) -> Path:
        return AGENTS / "leaks" / f"{self.name}.py"

    @property
    def clean(self) -> Path:
        return AGENTS / "clean" / f"{self.name}.py"

    @property
    def agent(self) -> str:
        """The name of the agent function."""
        found = _AGENT.search(self.leak.read_text("utf-8"))
        assert found is not None, f"{self.name} has no agent"
        return found[1]

    @property
    def code(self) -> str:
        """The marked line, without its mark."""
        line = self.leak.read_text("utf-8").splitlines()[self.line - 1]
        return line.partition("  # ")[0].strip()


def seeds() -> Iterator[Seed]:
    for path in sorted((AGENTS / "leaks").glob("*.py")):
        marked: list[Seed] = []
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            leak, differs = _LEAK.search(line), _DIFFERS.search(line)
            if leak or differs:
                facet = differs[1] if differs else DOUBLE.get(path.stem)
                marked.append(Seed(path.stem, number, leak[1] if leak else None, facet))
        assert len(marked) == 1, f"{path.name}: one marked line, not {len(marked)}"
        yield marked[0]


SEEDS = list(seeds())
