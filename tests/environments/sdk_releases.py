"""Every seam and framework with the lowest and the newest tested release of its packages, each in a folder beside this
environment.

``python -m tests.environments.sdk_releases [lowest|newest] [NAME ...]``: installs what `agentloom.adapters.releases`
names from the package registry, runs the table of seams with it, or the tests of a framework's adapter, and prints a
table; exit code 1 if a line of it is wrong. ``--python PATH`` takes another interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentloom.adapters.releases import RANGES

__all__ = ["ENVIRONMENTS", "Environment", "covered"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environment:
    """Packages that are tested together: ``modules`` by their names in ``RANGES``, each with the release of the end
    that is tested; ``more``: requirements beside them, ``oldest``: with the lowest releases. Run with them: rows of the
    table of seams, tests, a program. A program starts processes of its own: it has an environment that nothing of this
    one is in."""

    modules: tuple[str, ...]
    more: tuple[str, ...] = ()
    oldest: tuple[str, ...] = ()
    seams: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    program: str = ""
    only: tuple[str, ...] = field(default=("lowest", "newest"))


_HTTP = ("aiohttp", "urllib3", "requests", "httpx2", "httpx")
_GRAPH = (
    "tests/adapters/test_langchain.py",
    "tests/adapters/test_langgraph.py",
    "tests/adapters/test_langgraph_store.py",
)
_AGENTS = ("tests/adapters/test_openai_agents.py", "tests/adapters/test_openai_agents_sessions.py")
_MCP = ("tests/adapters/test_mcp.py", "tests/adapters/test_mcp_transports.py")

ENVIRONMENTS: dict[str, Environment] = {
    "openai": Environment(("openai", "httpx"), seams=("openai",)),
    "anthropic": Environment(("anthropic", "httpx"), seams=("anthropic",)),
    "google-genai": Environment(("google.genai", "aiohttp"), seams=("google",)),
    "litellm": Environment(("litellm",), seams=("litellm",)),
    "http": Environment(_HTTP, seams=("httpx", "aiohttp", "urllib")),
    "langgraph": Environment(
        ("langchain_core", "langgraph", "langgraph.checkpoint"),
        ("langchain-openai",),
        ("langgraph-prebuilt==1.0.8",),  # later ones of 1.0 do not import with the lowest
        seams=("langchain",),
        tests=_GRAPH,
    ),
    "llama-index": Environment(
        ("llama_index.core", "workflows"),
        ("llama-index-llms-openai-like",),
        seams=("llama",),
        tests=("tests/adapters/test_llama_index.py",),
    ),
    "pydantic-ai": Environment(
        ("pydantic_ai",), ("openai",), seams=("pydantic",), tests=("tests/adapters/test_pydantic_ai.py",)
    ),
    "openai-agents": Environment(("agents",), seams=("agents",), tests=_AGENTS),
    "mcp 1": Environment(
        ("mcp",),
        ("uvicorn", "pydantic<2.12", "orjson", "zstandard", "ahocorasick-rs", "click", "rich"),
        program="tests/adapters/mcp_old.py",
        only=("lowest",),
    ),
    "mcp 2": Environment(("mcp",), ("uvicorn", "websockets"), seams=("mcp",), tests=_MCP, only=("newest",)),
}
"""By name. What a folder does not hold comes from this environment."""


def covered(end: str) -> set[str]:
    """The modules that some environment tests at an end of their range."""
    return {module for one in ENVIRONMENTS.values() if end in one.only for module in one.modules}


def requirements(name: str, end: str) -> list[str]:
    """What is installed: the modules' packages at that end, and what goes with them."""
    made = ENVIRONMENTS[name]
    pinned = [f"{RANGES[one].package}=={getattr(RANGES[one], end)}" for one in made.modules]
    return [*pinned, *made.more, *(made.oldest if end == "lowest" else ())]


def _process(python: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(folder), str(ROOT), str(ROOT / "src")))
    return subprocess.run(
        [python, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def _seams(python: str, folder: Path, names: tuple[str, ...]) -> tuple[bool, str]:
    done = _process(python, folder, "-m", "tests.adapters.sdk_table", *names)
    said = [line for line in done.stdout.splitlines() if line.startswith(("wrong:", "  "))]
    rows = sum(line.startswith("| ") for line in done.stdout.splitlines()) - 2
    if said == ["wrong: 0"]:
        return True, f"{rows} rows of the table of seams, wrong: 0"
    return False, "; ".join(said) or done.stderr.strip()[-300:]


def _tests(python: str, folder: Path, names: tuple[str, ...]) -> tuple[bool, str]:
    options = ("-q", "-p", "no:cacheprovider", "-W", "default", "--no-header", "--disable-warnings")
    done = _process(python, folder, "-m", "pytest", *options, *names)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-300:]]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    good = done.returncode == 0 and "passed" in lines[-1] and "skipped" not in lines[-1]
    return good, "; ".join([lines[-1].partition(" in ")[0], *failed])


def _program(python: str, folder: Path, name: str) -> tuple[bool, str]:
    done = _process(python, folder, name)
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return False, (done.stdout + done.stderr).strip()[-300:]
    wrong = [key for key, one in found.items() if one["verdict"] != "identical" or one["differ"]]
    told = "equal" if not wrong else f"not equal: {', '.join(wrong)}"
    return not wrong, f"{Path(name).name}: {len(found) - len(wrong)} of {len(found)} programs {told}"


def run(name: str, end: str, python: str) -> tuple[bool, str]:
    """Make an environment and run what it is for. Whether all was well, and in words."""
    made = ENVIRONMENTS[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "site-packages"
        into = ["--target", str(folder)]
        if made.program:
            subprocess.run([python, "-m", "venv", place], check=True)
            python, into = str(Path(place) / "bin" / "python"), []
            (home,) = Path(place).glob("lib/python*/site-packages")
            (home / "project.pth").write_text(f"{ROOT / 'src'}\n{ROOT}\n", "utf-8")
        install = (python, "-m", "pip", "install", "-q", *into, *requirements(name, end))
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            return False, f"cannot be installed: {done.stderr.strip()[-300:]}"
        done_well = [
            *([_seams(python, folder, made.seams)] if made.seams else []),
            *([_tests(python, folder, made.tests)] if made.tests else []),
            *([_program(python, folder, made.program)] if made.program else []),
        ]
        return all(good for good, _ in done_well), "; ".join(said for _, said in done_well)


def rows(ends: list[str], names: list[str], python: str) -> Iterator[tuple[bool, str]]:
    """The lines of the table, and whether each is well."""
    for end in ends:
        for name, made in ENVIRONMENTS.items():
            if end not in made.only or (names and name not in names):
                continue
            good, said = run(name, end, python)
            yield good, f"| {name} | {end} | {', '.join(requirements(name, end))} | {said} |"


def main(arguments: list[str]) -> int:
    python = sys.executable
    if "--python" in arguments:
        at = arguments.index("--python")
        python = arguments[at + 1]
        arguments = arguments[:at] + arguments[at + 2 :]
    ends = [word for word in arguments if word in ("lowest", "newest")] or ["lowest", "newest"]
    names = [word for word in arguments if word not in ("lowest", "newest")]
    if unknown := [name for name in names if name not in ENVIRONMENTS]:
        print(f"no environment is called {unknown[0]}: there are {', '.join(ENVIRONMENTS)}")
        return 2
    print("| environment | end | packages | result |\n| --- | --- | --- | --- |", flush=True)
    bad = 0
    for good, line in rows(ends, names, python):
        bad += not good
        print(line, flush=True)
    print(f"wrong: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
