"""``agentloom replay`` gives its process what no guard can make virtual: the recorded hash seed and time zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os, random, time, uuid
from datetime import datetime

print(hash("a word"), list({"one", "two", "three", "four"}))
print(time.tzname, time.localtime().tm_zone, datetime.now(), datetime(2026, 7, 1).timestamp())
print(time.time(), random.random(), uuid.uuid4(), os.environ.get("GUARD_SAID"), os.environ["HOME"])
os.environ["GUARD_SET"] = "set"
time.sleep(0.01)
print(os.environ["GUARD_SET"], time.perf_counter())
"""


def agentloom(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    command = [sys.executable, "-m", "agentloom", *words]
    return subprocess.run(
        command, env=base | more, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_an_unmodified_script_replays_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    recorded = agentloom(tmp_path, "run", "script.py", TZ="Europe/Berlin", GUARD_SAID="yes")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.splitlines()[2].endswith(f"yes {tmp_path}")
    replayed = agentloom(tmp_path, "replay", "last", TZ="Asia/Tokyo", PYTHONHASHSEED="77", GUARD_OTHER="x")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "IDENTICAL" in (replayed.stdout + replayed.stderr).upper()


def test_the_list_of_runs_says_each_ones_guard(tmp_path: Path) -> None:
    text = "from agentloom import agent\n@agent\ndef main(): return 1\n"
    (tmp_path / "script.py").write_text(text)
    for guard in ("strict", "virtual", "off"):
        done = agentloom(tmp_path, "run", "--guard", guard, "script.py:main")
        assert done.returncode == 0, done.stderr
    for _ in range(2):  # read from the files, then from the index
        rows = json.loads(agentloom(tmp_path, "ls", "--json").stdout)["runs"]
        assert [row["guard"] for row in rows] == ["off", "virtual", "strict"]
