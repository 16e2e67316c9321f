"""Which programs there are, what each needs, and how one is recorded and replayed in processes of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentloom.store import open_store

__all__ = ["LLAMA_INDEX", "PROGRAMS", "Program", "missing", "prove"]

ROOT = Path(__file__).resolve().parents[2]
LLAMA_INDEX = ("llama-index-core", "llama-index-workflows", "llama-index-llms-openai-like")
"""Packages that do not go together with the newest openai: the table installs them in a folder beside."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the folder ``programs``: its framework and what it shows, the modules that it needs, the kinds of
    host calls that it makes."""

    framework: str
    shows: str
    modules: tuple[str, ...]
    kinds: tuple[str, ...]


PROGRAMS = {
    "langgraph_agent": Program(
        "LangGraph", "async, parallel ToolNode, Send", ("langgraph", "langchain_openai"), ("model", "tool")
    ),
    "langgraph_sync_agent": Program(
        "LangGraph",
        "sync: thread pool, parallel ToolNode, Send",
        ("langgraph", "langchain_openai"),
        ("model", "tool"),
    ),
    "langgraph_memory_agent": Program(
        "LangGraph",
        "checkpointer, retriever, interrupts in tools, resume",
        ("langgraph", "langchain_openai"),
        ("memory", "model", "retrieve", "tool"),
    ),
    "llama_index_agent": Program(
        "LlamaIndex",
        "workflow, parallel steps, FunctionAgent, retriever",
        ("llama_index.core", "llama_index.llms.openai_like"),
        ("model", "retrieve", "tool"),
    ),
    "pydantic_ai_agent": Program(
        "pydantic-ai", "async: async and sync tools, an agent in a tool", ("pydantic_ai",), ("model", "tool")
    ),
    "pydantic_ai_sync_agent": Program(
        "pydantic-ai", "run_sync: async and sync tools, dependencies", ("pydantic_ai",), ("model", "tool")
    ),
    "openai_agents_agent": Program(
        "OpenAI Agents", "hand-off, streamed, three runs at once", ("agents",), ("model", "tool")
    ),
    "openai_agents_sync_agent": Program(
        "OpenAI Agents", "run_sync: parallel tools", ("agents",), ("model", "tool")
    ),
    "litellm_agent": Program("litellm", "a loop of tools, a stream, at once", ("litellm",), ("model",)),
    "google_genai_agent": Program(
        "google-genai", "functions that the SDK calls, chats, a stream", ("google.genai",), ("model", "tool")
    ),
    "mcp_agent": Program(
        "MCP", "servers by stdio and in memory at once, progress", ("mcp", "openai"), ("model", "tool")
    ),
}


def missing(program: str, folder: Path | None = None) -> list[str]:
    """Modules that the program needs and that are not installed, here or in ``folder``."""

    def there(name: str) -> bool:
        if folder is not None and (folder / name.replace(".", os.sep)).exists():
            return True
        try:
            return importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    return [name for name in PROGRAMS[program].modules if not there(name)]


def _process(*arguments: str, seed: int, at: Path, folder: Path | None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    paths = [] if folder is None else [str(folder)]
    path = os.pathsep.join([*paths, str(ROOT), kept.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=at,
        env=kept | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-3000:])
    return done.stdout


def _tape(*arguments: str, seed: int, at: Path, folder: Path | None) -> Any:
    return json.loads(
        _process("-m", "tests.frameworks.tape", *arguments, seed=seed, at=at, folder=folder).splitlines()[-1]
    )


def prove(program: str, runs: int, at: Path, folder: Path | None = None) -> tuple[int, str]:
    """Record ``runs`` runs in one process (the first is a cold one) and replay each in another, under another hash seed
    and without the server. How many were equal, and what was wrong with the first that was not."""
    store = at / "store"
    recorded = _tape("record", program, str(store), str(runs), seed=1, at=at, folder=folder)
    kinds = tuple(recorded["kinds"])
    if kinds != PROGRAMS[program].kinds or recorded["kinds"]["model"] != recorded["asked"]:
        return 0, f"recorded {recorded}"  # each model call once, and none beside the seam
    replayed = _tape("replay", program, str(store), "0", seed=2, at=at, folder=folder)
    verdicts = replayed["verdicts"]
    if verdicts.get("compared output") != runs:
        return 0, f"outputs were compared in {verdicts.get('compared output')} of {runs}"
    first = open_store(store).runs()[-1].run
    command = ("-m", "agentloom", "replay", first, "--store", str(store))
    printed = _process(*command, seed=3, at=at, folder=folder)
    if "IDENTICAL" not in printed:
        return 0, printed
    return verdicts.get("identical", 0), replayed["first"]
