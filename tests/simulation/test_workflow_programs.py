"""The replay of a workflow, written down again, is the trace that it read: random graphs, and every example.

What a workflow adds to other programs is in the bytes here: its paths, its states with choice and reads, the order of
branches and items, retries and their waits, sub-workflows and verify steps as child runs.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from agentloom import Trace, Workflow
from agentloom.errors import LoomError
from agentloom.format.journal import check
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says, Seen
from tests.api.workflow_programs import Broken, generate
from tests.docs.blocks import ROOT
from tests.simulation.rewriting import rewritten, salted

COUNT = 100
EXAMPLES = sorted((ROOT / "examples" / "workflows").glob("*.py"))
GIVEN = "812"


def recorded(graph: Workflow, given: object, seed: int | None = None) -> bytes:
    """The trace of a run, whatever it ended with."""
    store = MemoryStore()
    try:
        with salted():
            graph.run(given, seed=seed, store=store)
    except (Broken, LoomError):
        pass
    return store.read(store.resolve("last"))


def same(data: bytes, graph: Workflow, what: str) -> None:
    verdict = check(data)
    assert verdict.ok, f"{what}: {verdict}"
    assert rewritten(data, graph.agent().function) == data, what


def test_random_graphs() -> None:
    print(f"seeds 0 to {COUNT - 1}")
    kinds: Counter[str] = Counter()
    for seed in range(COUNT):
        data = recorded(generate(seed).workflow(), "go", seed)
        same(data, generate(seed).workflow(), f"seed {seed}")
        entries = Trace(data).journal.entries
        kinds.update({entry["kind"] for entry in entries})
        kinds["goto"] += any(entry.get("goto") for entry in entries)
    assert kinds["state"] > 0.9 * COUNT, kinds
    assert kinds["goto"] > 10, kinds


def module_of(path: Path) -> ModuleType:
    """The example as a fresh module."""
    spec = importlib.util.spec_from_file_location(f"workflow_again_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(seen: Seen) -> Says:
    """An answer that depends on the question, of whatever form it asks for."""
    asked = str(seen.body["messages"][-1]["content"])
    form = seen.body.get("response_format")
    return Says('{"team": "billing", "urgent": true, "value": 1}' if form else f"{len(asked)} {asked[:5]}")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai", reason="the openai SDK (extra models) is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    with FakeProvider(said) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        data = recorded(module_of(path).graph, GIVEN)
        asked = len(fake.seen)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    trace = Trace(data)
    assert asked == sum(call.kind == "model" for call in trace.calls)
    same(data, module_of(path).graph, path.stem)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 14
