"""The table of the corpus through real SDKs: what a program sees bare, recording and replaying, for each exchange.

``python -m tests.corpus.sdk_table [--part I/N] [--all]``; exit code 1 when one is not equal.

An exchange of an API that an SDK speaks is asked for through that SDK, any other of its file through httpx2. A file
applies when the manifest says that it is a container of HTTP traffic, and is equal when all its exchanges are: sync and
async, streams left early, and the connection cut in the middle of the body.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from agentloom.adapters import sdks
from agentloom.testing import Exchange, Faults, Player
from agentloom.testing.sdk_contract import compare_runs
from tests.corpus.files import Row, api_of, exchanges, unreadable
from tests.corpus.sdk_rebuild import Program, programs, sdk_of

LIMIT = 40.0
"""Seconds that one program may take in all its runs."""
WAYS = ("sync", "async", "left early", "cut")


@dataclass
class Line:
    """What came of one exchange: by way, "" or what is wrong."""

    file: str
    name: str
    api: str
    sdk: str
    found: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def equal(self) -> bool:
        return not any(self.found.values())


def examine(row: Row, one: Exchange) -> Line:
    """All ways of one exchange."""
    api = api_of(one)
    line = Line(row.file, one.name, api, sdk_of(one, api))
    for way, program in programs(one, api).items():
        line.found[way] = _limited(program, one, None)
    if len(one.body) > 8:
        line.found["cut"] = _limited(programs(one, api)["sync"], one, Faults(cut=len(one.body) // 2))
    return line


def _limited(program: Program, one: Exchange, faults: Faults | None) -> str:
    """The comparison within the time limit; a crash is a difference too."""
    answer: list[str] = []

    def work() -> None:
        try:
            answer.append(
                compare_runs(program, lambda: Player(one, compare="path", repeat=True, faults=faults))
            )
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what came of this exchange
            answer.append(f"raised {type(error).__qualname__}: {error}")

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(LIMIT)
    return answer[0] if answer else f"no end after {LIMIT:g} s"


def run(part: int = 0, parts: int = 1) -> list[Line]:
    """The lines of every ``parts``-th exchange, from the ``part``-th."""
    sdks.watch()
    chosen = [item for number, item in enumerate(exchanges()) if number % parts == part]
    return [examine(row, one) for row, one in chosen]


def show(lines: list[Line], *, every: bool) -> Iterator[str]:
    """The table as lines of Markdown, then what is wrong."""
    yield "| through | files | exchanges | " + " | ".join(WAYS) + " |"
    yield "| --- |" + " --- |" * (len(WAYS) + 2)
    by: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by[line.sdk].append(line)
        by["all"].append(line)
    for name in sorted(by, key=lambda key: (key == "all", -len(by[key]))):
        tried, equal = Counter[str](), Counter[str]()
        for line in by[name]:
            tried.update(line.found.keys())
            equal.update(way for way, said in line.found.items() if not said)
        cells = [f"{equal[way]}/{tried[way]}" for way in WAYS]
        yield (
            f"| {name} | {len({line.file for line in by[name]})} | {len(by[name])} | "
            + " | ".join(cells)
            + " |"
        )
    bad = [line for line in lines if not line.equal]
    files = {line.file for line in lines}
    yield ""
    yield f"files equal: {len(files - {line.file for line in bad})} of {len(files)}"
    for line in lines if every else bad:
        wrong = "; ".join(f"{way}: {said[:300]}" for way, said in line.found.items() if said) or "equal"
        yield f"  {line.sdk} {line.api} {line.name}: {wrong}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.sdk_table")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every N-th exchange, from the I-th")
    parser.add_argument("--all", action="store_true", help="every exchange, not only those that are wrong")
    options = parser.parse_args(arguments)
    part, parts = map(int, options.part.split("/"))
    lines = run(part, parts)
    if not lines:
        print("no exchange: is the folder of recorded traffic there?", file=sys.stderr)
        return 2
    print("\n".join(show(lines, every=options.all)))
    return 0 if all(line.equal for line in lines) and not unreadable() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
