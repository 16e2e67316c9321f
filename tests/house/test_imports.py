"""Who may import what, and what `import agentloom` costs."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import tree

LOWER = ("replay", "runtime", "store", "format", "errors.py", "_version.py")
THIRD_PARTY = {
    "replay": {"orjson"},
    "runtime": {"ahocorasick_rs", "orjson"},
    "store": {"orjson", "zstandard"},
    "format": {"orjson"},
}
ALLOWED = {("runtime/host.py", "httpx2"): "the http host function, imported by its first request"}
NOT_AT_START = {
    "openai", "anthropic", "any_llm", "litellm", "google.genai", "langchain_core", "langgraph", "llama_index", "mcp",
    "httpx", "httpx2", "pydantic", "rich", "click", "requests", "aiohttp", "numpy", "xllamacpp", "llm", "pytest",
}  # fmt: skip


@pytest.mark.parametrize("room", LOWER)
def test_lower_rooms_use_the_standard_library_and_a_short_list(room: str) -> None:
    allowed = THIRD_PARTY.get(room, set()) | {"agentloom", "__future__"} | set(sys.stdlib_module_names)
    found = [
        f"{name}:{line}: {module}"
        for name, parsed in tree.modules().items()
        if name.split("/")[0] == room
        for module, line in tree.imports(parsed)
        if module.split(".")[0] not in allowed and (name, module) not in ALLOWED
    ]
    assert not found, "\n".join(found)


def test_no_room_imports_the_front_door() -> None:
    rooms = {path.stem for path in tree.SRC.iterdir() if not path.name.startswith("__")}
    found = [
        f"{name}:{line}: {module}"
        for name, parsed in tree.modules().items()
        if name not in {"__init__.py", "sync.py"}
        for module, line in tree.imports(parsed)
        if module == "agentloom" or (module.startswith("agentloom.") and module.split(".")[1] not in rooms)
    ]
    assert not found, "import from the room, not from `agentloom` itself:\n" + "\n".join(found)


def fresh(code: str, env: dict[str, str] | None = None) -> str:
    """What ``code`` prints in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tree.ROOT, env=env
    )
    return done.stdout


EVERYTHING = "from agentloom import *"


def test_importing_agentloom_imports_no_sdk() -> None:
    loaded = set(json.loads(fresh(f"{EVERYTHING}\nimport sys, json; print(json.dumps(sorted(sys.modules)))")))
    assert not loaded & NOT_AT_START, "`import agentloom` must not load these"


def test_importing_agentloom_is_fast(tmp_path: Path) -> None:
    """An agent's names at most four times, every public name five times, the bare package half of what an asyncio
    program with JSON imports.

    Processor time of new interpreters, taken in turn, each less the bare interpreter; the least of seven. The bytecode
    is kept between them: without it, what was edited since it was last kept is compiled in each of them.
    """
    baseline = "import asyncio, json, sqlite3, uuid, datetime, decimal, inspect, tempfile"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}

    def cost(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        fresh(code, env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    programs = ("pass", baseline, "import agentloom", "from agentloom import agent", EVERYTHING)
    rows = [[cost(code) for code in programs] for _ in range(7)]
    bare, base, alone, agents, whole = (min(column) for column in zip(*rows, strict=True))
    print(", ".join(f"{time * 1000:.0f} ms" for time in (bare, base, alone, agents, whole)))
    assert (agents - bare) / (base - bare) < 4
    assert (whole - bare) / (base - bare) < 5
    assert (alone - bare) / (base - bare) < 0.5


def test_names_of_the_front_door_are_there_once() -> None:
    names = json.loads(
        fresh(
            "import agentloom, json\n"
            "names = getattr(agentloom, '__all__', [])\n"
            "missing = [n for n in names if not hasattr(agentloom, n)]\n"
            "print(json.dumps([names, missing]))"
        )
    )
    assert len(names[0]) == len(set(names[0]))  # the order is ruff's RUF022
    assert not names[1], f"in __all__ and not there: {names[1]}"
