"""Every golden trace of format 1 replays, for ever, identical: in this process and under another hash seed and zone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import agentloom
from agentloom import Trace
from tests.golden.agents_v1 import AGENTS, Backend

FOLDER = Path(__file__).parent / "v1"
NAMES = sorted(AGENTS)
HEADS = {
    "async": "f6bd48e9f7598fe2897bffd5c02fd5c8a32dca8fe3383446b226774c426ec69e",
    "sync": "e535bb3ab9041ea617b001223e8b1b31e105ef0f63b0d91c412e1299725d024f",
    "workflow": "117f5d93b5f6cbe5f622270e9229fa6b0c49365c931dbd77f7f4dd5552e1ae02",
}
CODE = """
import sys
from tests.golden.agents_v1 import AGENTS
from agentloom import Trace
print(Trace.load(sys.argv[2]).replay(agent=AGENTS[sys.argv[1]]).verdict)
"""


def _path(name: str) -> Path:
    return FOLDER / f"replay-{name}.loom"


@pytest.mark.parametrize("name", NAMES)
def test_it_replays_identical_and_asks_nobody(name: str) -> None:
    backend = Backend()
    before = agentloom.set_backend(backend)
    try:
        report = Trace.load(_path(name)).replay(agent=AGENTS[name])
    finally:
        agentloom.set_backend(before)
    assert report.verdict == "identical"
    assert backend.asked == 0


@pytest.mark.parametrize("name", NAMES)
def test_it_replays_identical_elsewhere(name: str, tmp_path: Path) -> None:
    path = os.pathsep.join([str(FOLDER.parents[2]), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONHASHSEED": "99", "TZ": "Asia/Kathmandu", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", CODE, name, str(_path(name))],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "identical\n"


@pytest.mark.parametrize("name", NAMES)
def test_it_verifies_against_its_head(name: str) -> None:
    trace = Trace.load(_path(name))
    verdict = trace.verify(head=HEADS[name])
    assert (verdict.consistent, verdict.unaltered, verdict.complete) == (True, True, True)
