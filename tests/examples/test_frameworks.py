"""The examples of frameworks: each recorded unchanged with `agentloom run`, and replayed offline under another hash
seed, where no tool runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.testing import FakeProvider, Reply, Says, Wants

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"
LOOK = Wants("look_up", {"order": 812})
SCRIPTS: dict[str, tuple[str, list[Reply | str], tuple[str, ...]]] = {
    "langgraph_orders.py": (
        "langgraph",
        [Says(tools=[LOOK, Wants("refund", {"order": 812})]), "Refunded."],
        ("memory  checkpoint.put", "tool    look_up", "in ask", "in tools"),
    ),
    "pydantic_ai_orders.py": (
        "pydantic_ai",
        [Says(tools=[LOOK, Wants("refund", {"order": 812})]), "Refunded."],
        ("tool   look_up", "tool   refund", "in support"),
    ),
    "openai_agents_orders.py": (
        "agents",
        [Says(tools=[Wants("transfer_to_clerk", {})]), Says(tools=[LOOK]), "It is $40.00."],
        ("tool   look_up", "in desk", "in clerk"),
    ),
    "llama_index_orders.py": (
        "llama_index",
        [Says(tools=[LOOK]), "It is $40.00."],
        ("retrieve  VectorIndexRetriever", "tool      look_up", "in answer"),
    ),
}


def test_every_example_has_a_script() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SCRIPTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_recorded_and_replayed(name: str, tmp_path: Path) -> None:
    module, script, seen = SCRIPTS[name]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"NOT TESTED: {module} is not installed")

    def loom(seed: str, *words: str, **variables: str) -> str:
        env = os.environ | {"AGENTLOOM_STORE": str(tmp_path / "store"), "PYTHONHASHSEED": seed} | variables
        command = [sys.executable, "-m", "agentloom", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with FakeProvider(script) as fake:
        recorded = loom("1", "run", str(EXAMPLES / name), **fake.env())
        assert fake.count == len(script)
    replayed = loom("2", "replay", "last")
    assert "IDENTICAL" in replayed
    assert "0 model calls, 0 tools run" in replayed
    assert "looking up 812" in replayed
    assert recorded.splitlines()[0] in replayed
    shown = loom("3", "show", "last", "--all")
    for words in seen:
        assert words in shown, shown
