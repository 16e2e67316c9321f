"""``python -m tests.seeded_bugs [WORD ...]``: plant each bug (whose name holds a word) and show which proof finds it.

Exit code 1 when one survives. ``--matrix`` runs every proof against every bug, to see how many would find it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.seeded_bugs.bugs import BUGS, PROOFS
from tests.seeded_bugs.hunt import failure_of, hunt, planted


def main(words: list[str]) -> int:
    matrix = "--matrix" in words
    words = [word for word in words if word != "--matrix"]
    chosen = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    unmatched = [word for word in words if not any(word in bug.name for bug in BUGS)]
    if unmatched:
        print(f"no bug has {', '.join(map(repr, unmatched))} in its name; they are:", file=sys.stderr)
        print("\n".join(f"  {bug.name}" for bug in BUGS), file=sys.stderr)
        return 2
    survivors = 0
    for bug in chosen:
        with tempfile.TemporaryDirectory() as folder:
            if matrix:
                source = planted(bug, Path(folder))
                finders = [
                    name for name, arguments in PROOFS.items() if failure_of(arguments, source) is not None
                ]
                print(f"{bug.name:<70}  {' '.join(finders) or 'SURVIVES'}", flush=True)
                survivors += not finders
                continue
            found = hunt(bug, Path(folder), every=True)
            survivors += found.proof is None
            print(
                f"{bug.name:<70}  {found.proof or 'SURVIVES':<9} {found.seconds:5.1f} s  {found.said}",
                flush=True,
            )
    print(f"{len(chosen)} bugs, {survivors} survive")
    return survivors > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
