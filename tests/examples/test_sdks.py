"""The examples of SDKs: each recorded unchanged with `agentloom run`, and replayed offline under another hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.testing import FakeProvider, Reply, Says, Wants

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sdks"
COSTS = Says("It costs forty dollars.")
SCRIPTS: dict[str, list[Reply | str]] = {
    "openai_orders.py": [Says(tools=[Wants("look_up", {"order": 812})]), COSTS],
    "anthropic_orders.py": [COSTS],
    "google_orders.py": [COSTS, COSTS],
    "litellm_orders.py": [COSTS],
    "mcp_orders.py": [Says(tools=[Wants("look_up", {"order": 812})]), COSTS],
    "http_tools.py": [Says("order"), Says("one"), Says("two"), Says("terms")],
}


def test_every_example_has_a_script() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_recorded_and_replayed(name: str, tmp_path: Path) -> None:
    def loom(seed: str, *words: str, **variables: str) -> str:
        env = os.environ | {"AGENTLOOM_STORE": str(tmp_path / "store"), "PYTHONHASHSEED": seed} | variables
        command = [sys.executable, "-m", "agentloom", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with FakeProvider(SCRIPTS[name], others=True) as fake:
        variables = fake.env() | {
            "GOOGLE_GEMINI_BASE_URL": fake.google_url,
            "GEMINI_API_KEY": "unused",
            "OPENAI_API_BASE": fake.openai_url,
            "SHOP_URL": fake.url,
        }
        recorded = loom("1", "run", str(EXAMPLES / name), **variables)
        assert fake.count == len(SCRIPTS[name])
    replayed = loom("2", "replay", "last", SHOP_URL="")
    assert "IDENTICAL" in replayed
    assert recorded.splitlines()[0] in replayed
