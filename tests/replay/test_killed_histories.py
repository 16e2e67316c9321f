"""Killed (SIGKILL) while it records a history that grows, at any moment: the file holds, every acknowledged call reads
back as it was made, and the replay matches all of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import agentloom
from agentloom import Trace
from agentloom.format.journal import check
from tests.cli.scripts import clean

SEED = 20261128
ROOT = Path(__file__).parents[2]
AGENT = """
import sys
import agentloom
from agentloom import agent, sync


class Echo:
    reads_only = True
    count = 0

    def complete_sync(self, request):
        Echo.count += 1
        print(Echo.count, flush=True)
        return {"content": f"answer {Echo.count} to " + str(request["messages"][-1]["content"])[:20]}


agentloom.set_backend(Echo())


@agent
def talks(turns):
    messages = [{"role": "system", "content": "Be brief. " * 40}]
    for turn in range(turns):
        messages.append({"role": "user", "content": [{"type": "text", "text": f"question {turn}"}]})
        if turn % 7 == 5:
            first = next(one for one in messages if one["role"] == "user")
            first["content"][0]["text"] += " (edited)"  # in place, deep in the history
        if turn % 11 == 9:
            del messages[1:4]  # compacted
        answer = sync.model("m", messages, temperature=turn % 3)
        messages.append({"role": "assistant", "content": str(answer)})
    return len(messages)


if __name__ == "__main__":
    talks.run(100_000, store=sys.argv[1])
"""


@pytest.mark.parametrize("round_", range(4))
def test_killed_at_any_call(tmp_path: Path, round_: int) -> None:
    rng = random.Random(SEED + round_)
    stop_at = rng.randrange(5, 120)
    script = tmp_path / "talks.py"
    script.write_text(AGENT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        env=clean() | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if int(line) >= stop_at:
                break
        os.kill(process.pid, signal.SIGKILL)
    file = next((tmp_path / "store").rglob("*.loom"))
    data = file.read_bytes()

    verdict = check(data)
    assert verdict.consistent is True, f"seed {SEED}, round {round_}: {verdict.message}"
    alone = subprocess.run(
        [sys.executable, str(ROOT / "spec" / "verify.py"), str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "consistent: yes" in alone.stdout, alone.stdout + alone.stderr
    trace = Trace.open(store=tmp_path / "store")
    calls = trace.calls
    assert len(calls) >= stop_at - 1
    assert [call.result["content"].split(" to ")[0] for call in calls if call.status == "ok"] == [
        f"answer {n}" for n in range(1, 1 + sum(call.status == "ok" for call in calls))
    ]

    before = agentloom.set_backend(None)
    try:
        program: dict[str, object] = {"__name__": "killed"}
        exec(compile(AGENT, str(script), "exec"), program)
        report = trace.replay(check=False, agent=program["talks"])
    finally:
        agentloom.set_backend(before)
    assert report.finding is not None
    assert (report.finding.cls, report.finding.reason) == ("ended early", "recording ends")
    assert report.counts.exact == len(calls)
