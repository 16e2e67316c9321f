"""``python -m tests.fuzz [KIND or VICTIM ...]``: every hostile file of 10 MB given to everything that reads traces.

Prints what took longest, and what passed its bounds; exit code 1 when something did. Takes about ten minutes whole.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.fuzz.hostile import HOSTILE
from tests.fuzz.victims import VICTIMS
from tests.fuzz.ward import Bounds, run_in_ward

BOUNDS = Bounds(seconds=12, memory=768 << 20)
_WORTH_SAYING = 2.0  # seconds


def main(words: list[str]) -> int:
    kinds = [word for word in words if word in HOSTILE] or [*HOSTILE]
    victims = [word for word in words if word in VICTIMS] or [*VICTIMS]
    bad = 0
    slowest, largest = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            path = Path(folder, kind)
            path.write_bytes(HOSTILE[kind]())
            for victim in victims:
                ended = run_in_ward(VICTIMS[victim], str(path), BOUNDS)
                slowest, largest = max(slowest, ended.seconds), max(largest, ended.memory)
                bad += ended.problem is not None
                if ended.problem is not None or ended.seconds > _WORTH_SAYING or len(words) > 0:
                    what = "BAD " if ended.problem else "    "
                    print(
                        f"{what}{kind} {victim}  {ended.seconds:.1f} s  {ended.memory >> 20} MiB  {ended.said}",
                        flush=True,
                    )
                    if ended.problem:
                        print(ended.problem)
    print(
        f"{len(kinds)} files, {len(victims)} readers, {bad} bad; at most {slowest:.1f} s and {largest >> 20} MiB"
    )
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
