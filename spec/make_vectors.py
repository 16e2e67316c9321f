"""Make the conformance vectors: spec/vectors/v1/, its index, and the worked example of the specification.

    python spec/make_vectors.py            write them
    python spec/make_vectors.py --check    exit 1 when a file would change

Everything is fixed: entropy comes from a seeded generator, times are constants. What each file must give is written
down by hand in `vector_traces` and `vector_damage`, never taken from a checker.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from spec import vector_damage, vector_traces, worked_example
from spec.vector_maker import Vector

SPEC = Path(__file__).parent
DOCUMENT = SPEC.parent / "docs" / "trace-format.md"
BEGIN, END = "<!-- worked example: made by spec/make_vectors.py -->\n", "<!-- end of the worked example -->\n"


def files() -> dict[Path, bytes]:
    """Every file of the vectors, and the specification with its worked example."""
    vectors = [*vector_traces.vectors(), *vector_damage.vectors()]
    folder = SPEC / "vectors" / "v1"
    made = {folder / vector.file: vector.data for vector in vectors}
    if len(made) != len(vectors):
        raise SystemExit("two vectors have the same name")
    made[folder / "vectors.json"] = index(vectors)
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    made[DOCUMENT] = f"{before}{BEGIN}{worked_example.text()}{END}{after}".encode()
    return made


def index(vectors: list[Vector]) -> bytes:
    """``vectors.json``: what each file is, and the verdicts that it must give."""
    rows = [vector.row() for vector in sorted(vectors, key=lambda vector: vector.file)]
    text = json.dumps({"format": "loom", "version": "1.0", "vectors": rows}, indent=1)
    return text.encode() + b"\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the conformance vectors.")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 when something would change"
    )
    check = parser.parse_args().check
    made = files()
    folder = SPEC / "vectors" / "v1"
    stale = [path for path in folder.rglob("*.loom") if path not in made]
    changed = [path for path, data in made.items() if not path.exists() or path.read_bytes() != data]
    for path in [*stale, *changed]:
        print(("stale " if check else "") + str(path.relative_to(SPEC.parent)))
    if check:
        return 1 if stale or changed else 0
    for path in stale:
        path.unlink()
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
