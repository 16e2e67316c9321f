"""``python -m tests.mutation [SOURCE ...]``: change the code in one place at a time and see whether a test fails.

A SOURCE is a pattern below ``src/agentloom``, for example ``replay/mismatch.py`` or ``format/*.py``. Survivors are
shown unless a rule of `changes` or an entry of ``accepted.toml`` says why they may live. Exit code 1: one has neither.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.mutation import accepted
from tests.mutation.changes import RULES, Mutant
from tests.mutation.ground import KILLED, SKIPPED, SOURCES, TESTS, Ground, sample


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    sources = tuple(options.sources) or SOURCES
    with tempfile.TemporaryDirectory() as scratch:
        ground = Ground(Path(options.folder or scratch).resolve(), sources, tuple(options.tests or TESTS))
        if not options.report:
            ground.folder.mkdir(parents=True, exist_ok=True)
            ground.prepare()
        mutants = ground.mutants()
        worth = [mutant for mutant in mutants if mutant.rule is None]
        if not options.report:
            chosen = worth if options.sample is None else sample(worth, options.sample, options.seed)
            print(f"seed {options.seed}" if options.sample else "all", f"{len(chosen)} mutants", flush=True)
            again = survivors(chosen, ground.results()) if options.again else []
            ground.choose({mutant.name for mutant in chosen}, {mutant.name for mutant in again})
            ground.run(options.quick)
        if options.table:
            print(table(worth, ground.results()))
        return report(mutants, ground.results(), propose=options.propose)


def survivors(mutants: list[Mutant], results: dict[str, str]) -> list[Mutant]:
    """The mutants that live without a reason."""
    alive = [mutant for mutant in mutants if results[mutant.name] not in {KILLED, SKIPPED}]
    return accepted.left(alive, accepted.FILE.read_text(encoding="utf-8"))


def report(mutants: list[Mutant], results: dict[str, str], *, propose: bool) -> int:
    """Print numbers and survivors; 1 if a survivor has no reason."""
    rules = Counter(mutant.rule for mutant in mutants)
    worth = [mutant for mutant in mutants if mutant.rule is None]
    fates = Counter(results[mutant.name] for mutant in worth)
    alive = [mutant for mutant in worth if results[mutant.name] not in {KILLED, SKIPPED}]
    left = survivors(worth, results)
    if propose:
        print(accepted.as_toml(left))
    else:
        for mutant in left:
            print(f"{mutant.name}: {results[mutant.name]}\n{mutant.change}\n")
    if not fates[SKIPPED]:
        for entry in accepted.unused(mutants, alive, accepted.FILE.read_text(encoding="utf-8")):
            print(f"accepted, but no such mutant survives: {entry}\n")
    print(f"{len(mutants)} mutants")
    for rule, (_, meaning) in RULES.items():
        print(f"{rules[rule]:6} not tried, rule {rule}: {meaning}")
    print(f"{fates[SKIPPED]:6} not tried, not in the sample")
    print(f"{fates[KILLED]:6} killed")
    print(f"{len(alive) - len(left):6} survive and are accepted, with a reason")
    print(f"{len(left):6} survive without a reason")
    return bool(left)


def table(mutants: list[Mutant], results: dict[str, str]) -> str:
    """A row for each module: mutants that are worth trying, and what became of them."""
    modules = dict.fromkeys(mutant.function.split(".")[1] for mutant in mutants)
    left = Counter(mutant.function.split(".")[1] for mutant in survivors(mutants, results))
    rows = [
        "| module | mutants | killed | accepted | left | not tried |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    total: Counter[str] = Counter()
    for module in modules:
        fates = Counter(results[m.name] for m in mutants if m.function.split(".")[1] == module)
        counts = {
            "mutants": fates.total(),
            "killed": fates[KILLED],
            "left": left[module],
            "skipped": fates[SKIPPED],
        }
        counts["accepted"] = counts["mutants"] - counts["killed"] - counts["left"] - counts["skipped"]
        total.update(counts)
        rows.append(_row(module, counts))
    return "\n".join([*rows, _row("all", total)])


def _row(name: str, counts: Mapping[str, int]) -> str:
    order = ("mutants", "killed", "accepted", "left", "skipped")
    return f"| {name} | {' | '.join(str(counts[each]) for each in order)} |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("sources", nargs="*", metavar="SOURCE")
    parser.add_argument("--tests", nargs="+", help="tests to run instead of those of the four rooms")
    parser.add_argument("--sample", type=int, help="try so many, chosen by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="try known survivors again")
    parser.add_argument(
        "--quick", type=float, default=math.inf, metavar="SECONDS", help="of tests for a mutant"
    )
    parser.add_argument("--folder", help="keep the copy here, and use what an earlier run found out")
    parser.add_argument("--report", action="store_true", help="run nothing: show what --folder holds")
    parser.add_argument("--table", action="store_true", help="print numbers for each module")
    parser.add_argument("--propose", action="store_true", help="print survivors as entries for accepted.toml")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
