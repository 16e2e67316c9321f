"""A private copy of the repository in which mutmut plants its mutants; `trying` runs the tests that belong to them."""

from __future__ import annotations

import fnmatch
import importlib.metadata
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.changes import Mutant, mutants_of

__all__ = ["SOURCES", "TESTS", "Ground"]

ROOT = Path(__file__).resolve().parents[2]
VERSION = "3.8.1"
"""Of mutmut: its files and names are read here."""
COPIED = (
    "src",
    "tests",
    "spec",
    "docs",
    "examples",
    "benchmarks",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)
SOURCES = (
    "format/*.py",
    *(f"replay/{name}.py" for name in "mismatch shuffle source fields align bearings recording".split()),
    *(f"replay/{name}.py" for name in "answered cause refusal replayer search".split()),
    *(
        f"runtime/{name}.py"
        for name in "engine ledger profiles calls fieldrules minted baton boundary".split()
    ),
)
TESTS = (
    "tests/format",
    "tests/spec",
    "tests/replay",
    "tests/runtime",
)  # what tests/api holds of steps: --tests
KILLED, SURVIVED, UNTESTED, SKIPPED = "killed", "survived", "no test", "skipped"
_CODES = {0: SURVIVED, 5: UNTESTED, 33: UNTESTED, 34: SKIPPED}
_ADDED = """
import sys
from hypothesis import Phase

sys.setrecursionlimit(20_000)  # every mutated function is called through one of mutmut's
settings.register_profile(  # a failure is enough: no smaller example is looked for
    "changed", settings.get_profile("agentloom"), phases=(Phase.explicit, Phase.generate), database=None
)
settings.load_profile("changed")
"""
_GENERATE = """
import os
from mutmut.mutation.trampoline import set_mutant_under_test
set_mutant_under_test("mutant_generation")
from mutmut import __main__ as mutmut
os.makedirs("mutants", exist_ok=True)
mutmut.copy_src_dir(); mutmut.copy_also_copy_files(); mutmut.setup_source_paths(); mutmut.create_mutants(1)
"""


@dataclass
class Ground:
    """The copy in ``folder``, which may hold one already: results of functions that are unchanged are kept."""

    folder: Path
    sources: tuple[str, ...]
    tests: tuple[str, ...]

    def prepare(self) -> None:
        """Copy the files of the repository that git does not ignore and have mutmut write its mutants."""
        _want_mutmut()
        listed = subprocess.run(
            ["git", "ls-files", "-zco", "--exclude-standard", "--", *COPIED],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            _copy(ROOT / name, self.folder / name)
        conftest = self.folder / "tests" / "conftest.py"
        conftest.write_text(conftest.read_text(encoding="utf-8") + _ADDED, encoding="utf-8")
        project = self.folder / "pyproject.toml"
        settings = self._settings()
        project.write_text(project.read_text(encoding="utf-8") + settings, encoding="utf-8")
        noted = self.folder / "settings.txt"
        if noted.is_file() and noted.read_text(encoding="utf-8") != settings:
            shutil.rmtree(self.folder / "mutants")  # mutmut would not look again at files that are unchanged
        noted.write_text(settings, encoding="utf-8")
        self._python("-c", _GENERATE)

    def _settings(self) -> str:
        rooms = {source.partition("/")[0] for source in self.sources}
        beside = [source for source in SOURCES if source.partition("/")[0] in rooms]
        more = [each for each in self.sources if not any(fnmatch.fnmatch(each, known) for known in beside)]
        settings = {
            "source_paths": ["src"],
            "only_mutate": [f"src/agentloom/{source}" for source in dict.fromkeys((*beside, *more))],
            "also_copy": [name for name in COPIED if name not in {"src", "tests", "pyproject.toml"}],
        }
        return "\n[tool.mutmut]\n" + "".join(
            f"{name} = {json.dumps(value)}\n" for name, value in settings.items()
        )

    def mutants(self) -> list[Mutant]:
        """All mutants of the chosen sources, in the order of their files."""
        found: list[Mutant] = []
        for meta in self._metas():
            file = meta.with_suffix("")
            module = str(file.relative_to(self._mutated).with_suffix("")).replace(os.sep, ".")
            if not module.endswith("__init__"):
                found += mutants_of(file.read_text(encoding="utf-8"), module)
        return found

    def choose(self, wanted: set[str], again: Collection[str] = ()) -> None:
        """Have only these tried by the next `run`; what is known stays, but ``again`` are tried once more."""
        for meta in self._metas():
            data = json.loads(meta.read_text(encoding="utf-8"))
            codes = data["exit_code_by_key"]
            for name, code in codes.items():
                if name not in wanted:
                    codes[name] = 34 if code is None else code
                elif code == 34 or name in again:
                    codes[name] = None
            meta.write_text(json.dumps(data, indent=4), encoding="utf-8")

    def run(self, quick: float) -> None:
        """Try the chosen mutants, one after the other, each with tests of up to ``quick`` seconds."""
        self._python(
            "-m",
            "tests.mutation.trying",
            str(quick),
            *map(str, self._metas()),
            "--",
            *self.tests,
            within="mutants",
        )

    def results(self) -> dict[str, str]:
        """What became of each mutant, by its name; a mutant that ran out of time or memory counts as killed."""
        results: dict[str, str] = {}
        for meta in self._metas():
            codes = json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
            results |= {
                name: SKIPPED if code is None else _CODES.get(code, KILLED) for name, code in codes.items()
            }
        return results

    @property
    def _mutated(self) -> Path:
        return self.folder / "mutants" / "src" / "agentloom"

    def _metas(self) -> list[Path]:
        metas = sorted(self._mutated.rglob("*.py.meta"))
        names = [str(meta.relative_to(self._mutated)).removesuffix(".meta") for meta in metas]
        return [
            meta for meta, name in zip(metas, names, strict=True)
            if any(fnmatch.fnmatch(name, source) for source in self.sources)
        ]  # fmt: skip

    def _python(self, *arguments: str, within: str = "") -> None:
        """A process of our interpreter in the copy, out of the way of others; what it says is in ``mutmut.log``."""
        with (self.folder / "mutmut.log").open("ab") as log:
            done = subprocess.run(
                ["nice", "-n", "15", sys.executable, *arguments],
                cwd=self.folder / within,
                env=os.environ | {"PYTHONPATH": "src"},
                stdout=log,
                stderr=log,
                check=False,
            )
        if done.returncode:
            end = (self.folder / "mutmut.log").read_text(encoding="utf-8", errors="replace")[-3000:]
            raise SystemExit(f"mutmut ended with {done.returncode}; the end of mutmut.log:\n{end}")


def sample(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """``count`` of the mutants, the same for the same seed."""
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


def _want_mutmut() -> None:
    try:
        version = importlib.metadata.version("mutmut")
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    if version != VERSION:
        raise SystemExit(f"this wants mutmut {VERSION}, not {version}: pip install -e '.[dev,mutation]'")


def _copy(source: Path, target: Path) -> None:
    """Copy a file where it differs: mutmut looks at times to see what it has to do again."""
    if not source.is_file():  # deleted, and not yet committed
        return
    if not target.is_file() or source.read_bytes() != target.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
